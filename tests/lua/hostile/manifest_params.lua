-- expect: flow-invalid
local nietz = require("@nietz")
local params = {}
for n = 1, 5000 do
  params["p" .. n] = { type = "string" }
end
return nietz.flow { name = "hostile", summary = "Hostile", params = params, run = function() end }
