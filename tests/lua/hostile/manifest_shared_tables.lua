-- expect: request-invalid
-- One table, which two hundred collections share: as plain data it is there two hundred times.
local choices = {}
for index = 1, 100000 do
	choices[index] = "a text that is not short"
end
local collections = {}
for index = 1, 200 do
	collections["c" .. index] = { path = "c" .. index .. "/{id}.yaml", schema = { type = "object", enum = choices } }
end
return require("@nietz").flow({ name = "shared", summary = "Shares", collections = collections, run = function() end })
