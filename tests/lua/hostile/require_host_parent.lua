-- expect: module-not-found
return require("@nietz/../x")
