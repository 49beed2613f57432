-- expect: permission-refused
local nietz = require("@nietz")
local llm = require("@nietz/llm")
return nietz.flow {
  name = "hostile",
  summary = "Hostile",
  run = function()
    llm.chat { prompt = "x" }
  end,
}
