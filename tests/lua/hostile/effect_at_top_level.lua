-- expect: flow-invalid
local nietz = require("@nietz")
local ui = require("@nietz/ui")
ui.say("loading")
return nietz.flow { name = "hostile", summary = "Hostile", run = function() end }
