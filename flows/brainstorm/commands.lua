--!strict
--- The commands, and what a line that the user typed means: a command with its argument, a slip of the finger, or an answer.
--- "save the file in S3" is an answer, `save` is a command. Pure, so that it can be tested.

local list = require("../common/list")
local text = require("@nietz/text")

local commands = {}

--- What stands after a command: nothing, any text (or nothing), a number, or one of some words.
export type Argument = "none" | "text" | "number" | "word"

export type Command = {
	name: string,
	group: string,
	argument: Argument,
	--- For `word`: what is accepted; nil for a word that the command itself looks up.
	words: { string }?,
	--- Other names, French ones among them.
	aliases: { string }?,
}

export type Parsed =
	{ kind: "command", name: string, argument: string }
	| { kind: "answer", text: string }
	--- Nearly a command: what it may have meant.
	| { kind: "slip", typed: string, name: string }
	--- The beginning of several commands.
	| { kind: "ambiguous", typed: string, names: { string } }
	--- A known command with an argument that it does not take.
	| { kind: "misused", name: string, argument: string }
	| { kind: "unknown", typed: string }

--- In the order of `help`.
commands.ALL = {
	{ name = "continue", group = "go", argument = "none", aliases = { "continuer", "next" } },
	{ name = "back", group = "go", argument = "number", aliases = { "retour" } },
	{ name = "dive", group = "go", argument = "text" },
	{ name = "pivot", group = "go", argument = "text" },
	{ name = "diverge", group = "go", argument = "none" },
	{ name = "converge", group = "go", argument = "none" },
	{ name = "status", group = "look", argument = "none", aliases = { "statut" } },
	{ name = "scoring", group = "look", argument = "none" },
	{ name = "energy", group = "look", argument = "none", aliases = { "energie" } },
	{ name = "plan-preview", group = "look", argument = "none" },
	{ name = "sessions", group = "look", argument = "none" },
	{ name = "technique", group = "think", argument = "word" },
	{ name = "framework", group = "think", argument = "word", words = { "moscow", "5whys", "swot" } },
	{ name = "premortem", group = "think", argument = "none" },
	{ name = "spike", group = "think", argument = "text" },
	{ name = "security-check", group = "think", argument = "none" },
	{ name = "modes", group = "voices", argument = "none" },
	{ name = "mode", group = "voices", argument = "word" },
	{ name = "party", group = "voices", argument = "text" },
	{ name = "panel", group = "voices", argument = "text" },
	{ name = "save", group = "end", argument = "none", aliases = { "checkpoint" } },
	{ name = "finish", group = "end", argument = "none", aliases = { "finir", "terminer" } },
	{ name = "quit", group = "end", argument = "none", aliases = { "exit", "pause", "quitter" } },
	{ name = "abandon", group = "end", argument = "none", aliases = { "abandonner" } },
	{ name = "help", group = "end", argument = "none", aliases = { "aide" } },
} :: { Command }

--- The groups of `help`, in order.
commands.GROUPS = { "go", "think", "voices", "look", "end" }

--- What may follow `party` and `panel`; anything else after them is an answer.
local SUBCOMMANDS: { [string]: { string } } = {
	party = { "add", "focus", "exit" },
	panel = { "debate", "socratic", "exit" },
}

--- Without a slash, fewer letters than this are never an abbreviation: answers are short too.
local MIN_ABBREVIATION = 3

--- A word this long that is nearly a command is more likely a slip than an answer.
local MIN_SLIP = 5

local function find_command(name: string): Command?
	return list.find(commands.ALL, function(command): boolean
		return command.name == name or table.find(command.aliases or {}, name) ~= nil
	end)
end

--- Returns all names, for completion and for guessing.
function commands.names(): { string }
	return list.map(commands.ALL, function(command): string
		return command.name
	end)
end

local function names_starting_with(prefix: string): { string }
	local found: { string } = {}
	for _, command in commands.ALL do
		if string.sub(command.name, 1, #prefix) == prefix then
			table.insert(found, command.name)
		end
	end
	return found
end

--- Whether `argument` is one that the command takes; a sentence after a command's name makes it an answer.
local function accepts(command: Command, argument: string): boolean
	if argument == "" then
		return true
	elseif command.argument == "none" then
		return false
	elseif command.argument == "number" then
		return string.match(argument, "^%d+$") ~= nil
	elseif command.argument == "word" then
		return string.match(argument, "^%S+$") ~= nil and (command.words == nil or table.find(command.words, text.fold(argument)) ~= nil)
	end
	local subcommands = SUBCOMMANDS[command.name]
	if subcommands ~= nil then
		local first = string.match(argument, "^%S+") :: string
		return table.find(subcommands, text.fold(first)) ~= nil
	end
	return true
end

local function resolve(word: string, forced: boolean): (Command?, { string })
	local exact = find_command(word)
	if exact ~= nil then
		return exact, {}
	end
	if not forced and #word < MIN_ABBREVIATION then
		return nil, {}
	end
	local candidates = names_starting_with(word)
	if #candidates == 1 then
		return find_command(candidates[1]), {}
	end
	return nil, candidates
end

--- Returns what a line means. `/save` and `save` are the same, but a slash can only be a command.
function commands.parse(line: string): Parsed
	local typed = text.trim(line)
	-- "/tmp/cache" is a path, so an answer.
	local forced = string.match(string.match(typed, "^%S+") or "", "^[/:]%a[%a%-]*$") ~= nil
	local rest = if forced then string.sub(typed, 2) else typed
	if rest == "?" then
		return { kind = "command", name = "help", argument = "" }
	end
	local head, argument = string.match(rest, "^(%S+)%s*(.*)$")
	if head == nil then
		return { kind = "answer", text = "" }
	end
	local word = text.fold(head)
	local alone = argument == ""
	-- An abbreviation or a slip followed by more words is a sentence, unless a slash says otherwise.
	local command: Command? = if alone or forced then nil else find_command(word)
	local candidates: { string } = {}
	if alone or forced then
		command, candidates = resolve(word, forced)
	end
	if command ~= nil then
		if accepts(command, argument :: string) then
			return { kind = "command", name = command.name, argument = argument :: string }
		elseif forced or (command.argument == "number" and string.match(argument :: string, "^%S+$") ~= nil) then
			return { kind = "misused", name = command.name, argument = argument :: string }
		elseif command.words ~= nil and string.match(argument :: string, "^%S+$") ~= nil then
			return { kind = "misused", name = command.name, argument = argument :: string }
		end
		return { kind = "answer", text = typed }
	end
	if #candidates > 1 then
		return { kind = "ambiguous", typed = head, names = candidates }
	end
	if alone and (forced or #word >= MIN_SLIP) and string.match(word, "^[%a%-]+$") ~= nil then
		local near = text.nearest(word, commands.names())
		if near ~= nil then
			return { kind = "slip", typed = head, name = near }
		end
	end
	if forced then
		return { kind = "unknown", typed = head }
	end
	return { kind = "answer", text = typed }
end

return commands
