--!strict
--- How the user is asked, and what a line of theirs means: an answer, a command, or a question to one of the council.

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

--- By place in the session: the commands that may be typed, and what each means.
dialogue.COMMANDS = {
	clarify = {
		skip = "skip",
		["skip question"] = "skip",
		defer = "defer",
		["defer question"] = "defer",
		["skip all"] = "skip all",
		["proceed with defaults"] = "defaults",
		defaults = "defaults",
		cancel = "cancel",
	},
	between = {
		["go on"] = "go on",
		continue = "go on",
		stop = "stop",
		extend = "extend",
		cancel = "cancel",
	},
	final = { done = "done", revisit = "revisit", cancel = "cancel" },
} :: { [string]: { [string]: string } }

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

--- Returns what a line means at this place. `names` are those who can be addressed. Pure.
function dialogue.parse(line: string, place: string, names: { string }): Line
	local typed = text.trim(line)
	if typed == "" then
		return { kind = "empty" }
	end
	local command = dialogue.COMMANDS[place][text.fold((string.gsub(typed, "^/", "")))]
	if command ~= nil then
		return { kind = "command", name = command }
	elseif string.sub(typed, 1, 1) == "@" then
		local name, rest = addressee(string.sub(typed, 2), names)
		local first = string.match(typed, "^@(%S+)") or ""
		return { kind = "address", name = name, typed = first, text = rest }
	end
	return { kind = "text", text = typed }
end

--- Asks the user for a line; raises `app.CANCELLED` where it is `cancel`.
function dialogue.ask(id: string, place: string, prompt: string, names: { string }): Line
	local complete: { string } = {}
	for command in dialogue.COMMANDS[place] do
		table.insert(complete, command)
	end
	for _, name in names do
		table.insert(complete, "@" .. name)
	end
	table.sort(complete)
	local line = dialogue.parse(ui.ask({ id = id, prompt = prompt, optional = true, complete = complete }), place, names)
	if line.kind == "command" and line.name == "cancel" then
		error({ code = app.CANCELLED, message = "the session was cancelled" }, 0)
	end
	return line
end

return dialogue
