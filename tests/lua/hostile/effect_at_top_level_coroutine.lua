-- expect: flow-invalid
local nietz = require("@nietz")
local llm = require("@nietz/llm")
coroutine.wrap(function()
  llm.chat { prompt = "while loading" }
end)()
return nietz.flow { name = "hostile", summary = "Hostile", run = function() end }
