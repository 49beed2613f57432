-- expect: path-refused
return require("./files/link")
