--!strict
-- Ends in the way that it is asked for.
local nietz = require("@nietz")
local documents = require("@nietz/documents")
local llm = require("@nietz/llm")
local task = require("@nietz/task")
local ui = require("@nietz/ui")

local notes = documents.collection("notes")

local function talk()
	return llm.chat { prompt = "hello" }.text
end

return nietz.flow {
	name = "ends",
	summary = "Ends in each way that there is",
	params = { how = { type = "string", positional = true, required = true } },
	permissions = { llm = true },
	collections = {
		notes = {
			path = "notes/{slug}.yaml",
			schema = { type = "object", properties = { slug = { type = "string" }, count = { type = "integer" } } },
		},
	},
	run = function(ctx)
		local how = ctx.params.how
		if how == "error" then
			error("it went wrong")
		elseif how == "usage" then
			nietz.usage("--fast and --slow exclude each other", "give one of them")
		elseif how == "invalid" then
			notes:save { slug = "one", count = "many" }
		elseif how == "outside" then
			notes:save { slug = "../../outside" }
		elseif how == "ask" then
			return ui.ask { id = "name", prompt = "Your name?" }
		elseif how == "stubborn-ask" then
			local ok, said = pcall(function()
				return ui.ask { id = "name", prompt = "Your name?" }
			end)
			return if ok then said else "stubborn"
		elseif how == "stubborn" then
			local ok, said = pcall(talk)
			return if ok then said else "stubborn"
		elseif how == "no" then
			task.all {
				one = function()
					nietz.verdict(true, "so far")
				end,
			}
			nietz.verdict(false, "two of three are against it")
			return { against = 2 }
		elseif how == "yes" then
			nietz.verdict(true)
		elseif how == "no-then-error" then
			nietz.verdict(false, "which nobody will hear")
			error("it went wrong")
		elseif how == "talk" then
			return talk()
		end
		return how
	end,
}
