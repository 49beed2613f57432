-- expect: flow-invalid
local nietz = require("@nietz")
return nietz.flow {
  name = "hostile",
  summary = "Hostile",
  params = { a = { type = "string", short = "x" }, b = { type = "string", short = "x" } },
  run = function() end,
}
