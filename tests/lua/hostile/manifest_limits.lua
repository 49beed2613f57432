-- expect: flow-invalid
local nietz = require("@nietz")
return nietz.flow { name = "hostile", summary = "Hostile", limits = { seconds = 1e9 }, run = function() end }
