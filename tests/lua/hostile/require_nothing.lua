-- expect: module-not-found
return require("./files/nothing")
