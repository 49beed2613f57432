--!strict
-- Eight branches side by side, then one call on top of what they said.
local nietz = require("@nietz")
local llm = require("@nietz/llm")
local task = require("@nietz/task")

return nietz.flow {
	name = "branches",
	summary = "Asks eight at once",
	permissions = { llm = true },
	run = function()
		local branches = {}
		for number = 1, 8 do
			branches["b" .. number] = function()
				local first = llm.chat { prompt = "first " .. number }
				return llm.chat { prompt = "second " .. first.text }.text
			end
		end
		local said = task.all(branches)
		local parts = {}
		for number = 1, 8 do
			table.insert(parts, said["b" .. number])
		end
		return llm.chat { prompt = "sum up " .. table.concat(parts, "; ") }.text
	end,
}
