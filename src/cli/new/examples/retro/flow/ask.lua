--!strict
--- What the team says: a module of NAME. Its path is told from the file that requires it, and so are those of prompts.

local json = require("@nietz/json")
local ui = require("@nietz/ui")

export type Item = { about: string, text: string }

local ABOUT = { "well", "badly", "change" }
local PROMPTS = { well = "What went well?", badly = "What did not go well?", change = "What should change?" }
local COMMANDS: { ui.Command } = {
	{ name = "back", summary = "takes the last item back", words = { "back" } },
	{ name = "skip", summary = "goes to the next question, as an empty line does", words = { "skip" } },
	{ name = "finish", summary = "asks for nothing more", words = { "finish" } },
}

--- Asks each question until there is nothing more to say about it.
local function all(): { Item }
	-- An empty Lua table may be a list or not; this one is a list, also in a document that has nothing in it.
	local items: { Item } = json.array {}
	local at = 1
	while at <= #ABOUT do
		local about = ABOUT[at]
		local said, command = ui.ask { id = about, prompt = PROMPTS[about], optional = true, commands = COMMANDS }
		if command == "finish" then
			break
		elseif command == "back" then
			local last = table.remove(items) or { about = ABOUT[1], text = "nothing" }
			at = table.find(ABOUT, last.about) or 1
			ui.say(`Taken back: {last.text}`)
		elseif command == "skip" or said == "" then
			at += 1
		else
			table.insert(items, { about = about, text = said })
		end
	end
	return items
end

return { all = all }
