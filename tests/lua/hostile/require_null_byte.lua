-- expect: module-not-found
return require("./files/link\0.lua")
