-- expect: module-not-found
return require("./" .. string.rep("a/", 2000000))
