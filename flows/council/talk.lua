--!strict
--- What the user types: an answer, a command, or a word to one of the council.

local app = require("./app")
local text = require("@nietz/text")
local ui = require("@nietz/ui")

local talk = {}

export type Line =
	{ kind: "empty" }
	| { kind: "command", name: string }
	--- To the persona of this name; nil where nobody here is called so.
	| { kind: "address", name: string?, typed: string, text: string }
	| { kind: "text", text: string }

--- By place: what may be typed, and what it means.
talk.COMMANDS = {
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

--- Returns who is meant by what follows an `@`, and the rest: the longest name that fits, whole or by its first words.
local function addressed(line: string, names: { string }): (string?, string)
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
function talk.parse(line: string, place: string, names: { string }): Line
	local typed = text.trim(line)
	if typed == "" then
		return { kind = "empty" }
	end
	local command = talk.COMMANDS[place][text.fold((string.gsub(typed, "^/", "")))]
	if command ~= nil then
		return { kind = "command", name = command }
	elseif string.sub(typed, 1, 1) == "@" then
		local name, rest = addressed(string.sub(typed, 2), names)
		local first = string.match(typed, "^@(%S+)") or ""
		return { kind = "address", name = name, typed = first, text = rest }
	end
	return { kind = "text", text = typed }
end

--- Asks, and ends the session where the answer is `cancel`.
function talk.ask(id: string, place: string, prompt: string, names: { string }): Line
	local complete: { string } = {}
	for command in talk.COMMANDS[place] do
		table.insert(complete, command)
	end
	for _, name in names do
		table.insert(complete, "@" .. name)
	end
	table.sort(complete)
	local line = talk.parse(ui.ask({ id = id, prompt = prompt, optional = true, complete = complete }), place, names)
	if line.kind == "command" and line.name == "cancel" then
		error({ code = app.CANCELLED, message = "the session was cancelled" }, 0)
	end
	return line
end

return talk
