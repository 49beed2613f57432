-- expect: flow-invalid
-- One text, which is the path of two hundred collections.
local path = string.rep("c", 4000000) .. "/{id}.yaml"
local collections = {}
for index = 1, 200 do
	collections["c" .. index] = { path = path, schema = { type = "object" } }
end
return require("@nietz").flow({ name = "shared", summary = "Shares", collections = collections, run = function() end })
