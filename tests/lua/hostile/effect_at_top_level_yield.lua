-- expect: flow-invalid
local nietz = require("@nietz")
coroutine.yield(1)
return nietz.flow { name = "hostile", summary = "Hostile", run = function() end }
