-- expect: flow-invalid
return require("./files/bytecode_text")
