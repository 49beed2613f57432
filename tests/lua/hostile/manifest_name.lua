-- expect: flow-invalid
local nietz = require("@nietz")
return nietz.flow { name = string.rep("a", 10000000), summary = "Hostile", run = function() end }
