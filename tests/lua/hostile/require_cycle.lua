-- expect: module-not-found
return require("./files/cycle_a")
