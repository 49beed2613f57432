-- expect: flow-limit
-- A whole flow that does not even finish loading.
local nietz = require("@nietz")
while true do
end
return nietz.flow { name = "hostile", summary = "Hostile", run = function() end }
