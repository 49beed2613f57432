-- expect: document-unreadable
return require("./files/bytecode")
