-- expect: flow-invalid
local nietz = require("@nietz")
return nietz.flow { name = "hostile", summary = string.rep("a", 10000000), run = function() end }
