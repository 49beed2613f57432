-- expect: module-not-found
return require("@self/../../x")
