--!strict
--- How the user is asked, which commands they have where, and what an answer is: one, or a question to one of the council.

local app = require("./app")
local list = require("../common/list")
local text = require("@nietz/text")
local translations = require("../common/translations")
local ui = require("@nietz/ui")

local dialogue = {}

export type Line =
	{ kind: "empty" }
	--- `text` is what stands behind the command.
	| { kind: "command", name: string, text: string }
	--- To the persona of this name; nil where no persona has it, or where `several` could be meant.
	| { kind: "address", name: string?, typed: string, text: string, several: { string } }
	| { kind: "text", text: string }
--- The same, for those who look at the kind first.
export type Said = { kind: string, name: string?, typed: string, text: string, several: { string } }

--- By place in the session: the commands that it offers, in order; their summaries stand in `lang/`.
local COMMANDS: { [string]: { any } } = {
	clarify = {
		{ name = "skip", words = { "skip", "skip question" } },
		{ name = "defer", words = { "defer", "defer question" } },
		{ name = "skip-all", words = { "skip all" } },
		{ name = "defaults", words = { "proceed with defaults", "defaults" } },
		{ name = "cancel", words = { "cancel" } },
	},
	before = {
		{ name = "none", words = { "no", "nothing", "non", "rien" } },
		{ name = "facts", words = { "facts" } },
		{ name = "strike", text = "N|WORDS" },
		{ name = "cancel", words = { "cancel" } },
	},
	between = {
		{ name = "go-on", words = { "go on", "continue" } },
		{ name = "stop", words = { "stop" } },
		{ name = "extend", words = { "extend" } },
		{ name = "fact", text = "TEXT" },
		{ name = "option", text = "TEXT" },
		{ name = "facts", words = { "facts" } },
		{ name = "strike", text = "N|WORDS" },
		{ name = "cancel", words = { "cancel" } },
	},
	final = {
		{ name = "done", words = { "done" } },
		{ name = "revisit", words = { "revisit" } },
		{ name = "again", words = { "again" } },
		{ name = "facts", words = { "facts" } },
		{ name = "fact", text = "TEXT" },
		{ name = "strike", text = "N|WORDS" },
		{ name = "cancel", words = { "cancel" } },
	},
	consider = {
		{ name = "council", words = { "council", "council anyway" } },
		{ name = "plain", words = { "plain" } },
		{ name = "cancel", words = { "cancel" } },
	},
}

--- Returns a name, or what was typed, as they are compared: small, without accents, apostrophes of any kind.
local function plain(value: string): string
	return (string.gsub(string.gsub(text.fold(value), "\226\128[\152\153]", ""), "['`]", ""))
end

--- Returns the words of a text, each with where it ends.
local function words_of(line: string): { { word: string, last: number } }
	local found: { { word: string, last: number } } = {}
	local at = 1
	while true do
		local first, last = string.find(line, "[^%s,:%?!%.;]+", at)
		if first == nil or last == nil then
			return found
		end
		table.insert(found, { word = plain(string.sub(line, first, last)), last = last })
		at = last + 1
	end
end

--- Whether a name has these words in this order: all of it, or a part that stands together.
local function fits(name: string, words: { string }): boolean
	local own = string.split(plain(name), " ")
	for from = 1, #own - #words + 1 do
		local same = true
		for index, word in words do
			same = same and own[from + index - 1] == word
		end
		if same then
			return true
		end
	end
	return false
end

--- Returns the names that the most words behind `@` fit, and the rest of the line.
local function addressees(line: string, names: { string }): ({ string }, string)
	local words = words_of(line)
	for count = math.min(4, #words), 1, -1 do
		local wanted: { string } = {}
		for index = 1, count do
			table.insert(wanted, words[index].word)
		end
		local found = list.filter(names, function(name): boolean
			return fits(name, wanted)
		end)
		local exact = list.filter(found, function(name): boolean
			return plain(name) == table.concat(wanted, " ")
		end)
		if #found > 0 then
			local rest = string.gsub(string.sub(line, words[count].last + 1), "^[%s,:]+", "")
			return if #exact > 0 then exact else found, text.trim(rest)
		end
	end
	return {}, ""
end

--- Returns what an answer means. `names` are those who sit here and can be addressed, by any part of their names; `others` can be
--- called in. Nobody can be addressed where there are no names. Pure.
function dialogue.parse(answer: string, names: { string }, others: { string }?): Line
	local typed = text.trim(answer)
	if typed == "" then
		return { kind = "empty" }
	elseif string.sub(typed, 1, 1) == "@" and #names > 0 then
		local line = string.sub(typed, 2)
		local first = string.match(typed, "^@(%S+)") or ""
		local here, rest = addressees(line, names)
		local there, more = addressees(line, others or {})
		-- More of the line can be somebody's name who does not sit here: `@Senior Developer` beside a Senior Architect.
		local found = if #here == 0 or (#there > 0 and #more < #rest) then there else here
		local words = if found == there then more else rest
		local one = if #found == 1 then found[1] else nil
		return { kind = "address", name = one, typed = first, text = if one then words else "", several = found }
	end
	return { kind = "text", text = typed }
end

--- Asks the user for a line; raises `app.CANCELLED` where it is `cancel`.
function dialogue.ask(
	t: translations.Translate,
	id: string,
	place: string,
	prompt: string,
	names: { string },
	others: { string }?,
	without: { string }?
): Said
	local offered: { ui.Command } = {}
	local complete: { string } = {}
	for _, command in COMMANDS[place] do
		if table.find(without or {}, command.name) == nil then
			local one = table.clone(command)
			one.summary = t(`command.{place}.{command.name}`)
			table.insert(offered, one)
			for _, word in command.words or {} :: { string } do
				table.insert(complete, word)
			end
		end
	end
	for _, name in names do
		table.insert(complete, "@" .. name)
	end
	table.sort(complete)
	local said, command = ui.ask({ id = id, prompt = prompt, optional = true, complete = complete, commands = offered })
	if command == nil and place ~= "clarify" and plain(text.trim(said)) == "help" then
		-- All would hear it, and it would be a fact of the case.
		ui.say(t("help_word"))
		return dialogue.ask(t, id, place, prompt, names, others, without)
	elseif command == "cancel" then
		error({ code = app.CANCELLED, message = "the session was cancelled" }, 0)
	elseif command ~= nil then
		return { kind = "command", name = command, typed = "", text = said, several = {} }
	end
	return dialogue.parse(said, names, others) :: any
end

return dialogue
