--!strict
-- Branches that share a table, each with two calls.
local nietz = require("@nietz")
local clock = require("@nietz/clock")
local llm = require("@nietz/llm")
local task = require("@nietz/task")

return nietz.flow {
	name = "branches",
	summary = "Work side by side on one table",
	permissions = { llm = true },
	run = function()
		local said, at = {}, clock.now()
		local function branch(name)
			return function()
				local first = llm.chat { prompt = name .. " first" }
				table.insert(said, first.text)
				local second = llm.chat { prompt = `{name} second` }
				table.insert(said, second.text)
				return second.text
			end
		end
		local ends = task.all { a = branch("a"), b = branch("b"), c = branch("c") }
		local last = llm.chat { prompt = "last " .. at }
		return { said = #said, ends = ends, last = last.text }
	end,
}
