-- expect: flow-invalid
local nietz = require("@nietz")
return nietz.flow { name = "hostile", summary = "Hostile", limits = { seconds = 0 / 0 }, run = function() end }
