-- expect: flow-invalid
-- A parameter that stands in the way of an option of the host.
local nietz = require("@nietz")
return nietz.flow { name = "hostile", summary = "Hostile", params = { help = { type = "string" } }, run = function() end }
