--!strict
--- How the user is asked, which commands they have where, and what an answer is: one, or a question to one of the council.

local app = require("./app")
local text = require("@nietz/text")
local ui = require("@nietz/ui")

local dialogue = {}

export type Line =
	{ kind: "empty" }
	| { kind: "command", name: string }
	--- To the persona of this name; nil where no persona has it.
	| { kind: "address", name: string?, typed: string, text: string }
	| { kind: "text", text: string }

local CANCEL: ui.Command = { name = "cancel", summary = "ends the session without an answer", words = { "cancel" } }

--- By place in the session: the commands that it offers.
local COMMANDS: { [string]: { ui.Command } } = {
	clarify = {
		{ name = "skip", summary = "leaves this question to an assumption", words = { "skip", "skip question" } },
		{ name = "defer", summary = "leaves it for later", words = { "defer", "defer question" } },
		{ name = "skip-all", summary = "leaves this question and all others", words = { "skip all" } },
		{
			name = "defaults",
			summary = "takes the defaults of this question and all others",
			words = { "proceed with defaults", "defaults" },
		},
		CANCEL,
	},
	between = {
		{ name = "go-on", summary = "begins the next cycle", words = { "go on", "continue" } },
		{ name = "stop", summary = "ends the debate, and decides", words = { "stop" } },
		{ name = "extend", summary = "lets the debate go on for longer", words = { "extend" } },
		CANCEL,
	},
	final = {
		{ name = "done", summary = "takes the answer as it is", words = { "done" } },
		{ name = "revisit", summary = "asks again what was skipped, and answers anew", words = { "revisit" } },
		CANCEL,
	},
}

--- Returns the name that a text after `@` begins with, and the rest of it. The longest name counts: one may begin like another.
local function addressee(line: string, names: { string }): (string?, string)
	local best: string?, rest = nil, ""
	for _, name in names do
		local head = string.sub(line, 1, #name)
		local after = string.sub(line, #name + 1, #name + 1)
		if
			text.fold(head) == text.fold(name)
			and (after == "" or string.find(after, "[%s,:%?!%.]") ~= nil)
			and (best == nil or #name > #best)
		then
			best, rest = name, string.sub(line, #name + 1)
		end
	end
	return best, text.trim((string.gsub(rest, "^[%s,:]+", "")))
end

--- Returns what an answer means. `names` are those who can be addressed. Pure.
function dialogue.parse(answer: string, names: { string }): Line
	local typed = text.trim(answer)
	if typed == "" then
		return { kind = "empty" }
	elseif string.sub(typed, 1, 1) == "@" then
		local name, rest = addressee(string.sub(typed, 2), names)
		local first = string.match(typed, "^@(%S+)") or ""
		return { kind = "address", name = name, typed = first, text = rest }
	end
	return { kind = "text", text = typed }
end

--- Asks the user for a line; raises `app.CANCELLED` where it is `cancel`.
function dialogue.ask(id: string, place: string, prompt: string, names: { string }): Line
	local offered = COMMANDS[place]
	local complete: { string } = {}
	for _, command in offered do
		for _, word in command.words or {} :: { string } do
			table.insert(complete, word)
		end
	end
	for _, name in names do
		table.insert(complete, "@" .. name)
	end
	table.sort(complete)
	local said, command = ui.ask({ id = id, prompt = prompt, optional = true, complete = complete, commands = offered })
	if command == "cancel" then
		error({ code = app.CANCELLED, message = "the session was cancelled" }, 0)
	elseif command ~= nil then
		return { kind = "command", name = command }
	end
	return dialogue.parse(said, names)
end

return dialogue
