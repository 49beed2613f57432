-- expect: flow-invalid
return require("./files/effect")
