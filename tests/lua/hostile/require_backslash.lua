-- expect: module-not-found
return require(".\\files\\link")
