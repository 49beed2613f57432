--!strict
--- What may be typed in place of an answer: the words that end a session, those that ask for something beside it, and the one that
--- leaves a question out. None of them is an answer, and none asks a model but those that end a session. The words of every language
--- are taken in each; told are those of the session's language, and the English ones.

local intent = require("./intent")
local translations = require("../common/translations")
local ui = require("@nietz/ui")

local commands = {}

local SOLVED = {
	"solved",
	"solved it",
	"found it",
	"I found it",
	"I've found it",
	"I have found it",
	"I solved it",
	"I've solved it",
	"I have solved it",
	"got it solved",
}
local GIVE_UP = {
	"I give up",
	"OK, I give up",
	"give up",
	"give up?",
}

--- By language: the words of each command beside the English ones.
local MORE: { [string]: { [string]: { string } } } = {
	fr = {
		solved = {
			"trouvé",
			"j'ai trouvé",
			"je l'ai trouvé",
			"c'est trouvé",
			"résolu",
			"j'ai résolu",
			"je l'ai résolu",
			"c'est résolu",
		},
		exit = { "quitter", "sortir" },
		["give-up"] = { "j'abandonne", "je renonce", "je laisse tomber", "abandonner" },
		hint = { "indice", "un indice" },
		undo = { "annuler" },
		help = { "aide" },
		skip = { "passer" },
	},
}

--- Returns commands with the words that a language has for them.
local function in_language(all: { ui.Command }, lang: string): { ui.Command }
	local more = MORE[lang] or {}
	for _, command in all do
		for _, word in more[command.name] or {} do
			table.insert(command.words :: { string }, word)
		end
	end
	return all
end

--- Returns the command that a line is by a word of another language than the session's, or nil.
function commands.in_other_language(line: string): string?
	local plain = string.gsub(intent.normalize(line), "[ .!]+$", "")
	for _, words in MORE do
		for name, all in words do
			for _, word in all do
				if name ~= "help" and name ~= "skip" and intent.normalize(word) == plain then
					return name
				end
			end
		end
	end
	return nil
end

--- Returns the commands of a turn, in a language.
function commands.of_turn(t: translations.Translate, lang: string): { ui.Command }
	return in_language({
		{ name = "solved", summary = t("commands.solved"), text = `[{t("commands.how")}]`, words = table.clone(SOLVED) },
		{ name = "exit", summary = t("commands.exit"), words = { "exit", "quit" } },
		{ name = "give-up", summary = t("commands.give_up"), words = table.clone(GIVE_UP) },
		{ name = "attach", summary = t("commands.attach"), text = t("commands.file") },
		{ name = "hint", summary = t("commands.hint"), words = { "hint", "hint?", "a hint" } },
		{ name = "recap", summary = t("commands.recap"), words = { "recap", "where was I" } },
		{ name = "undo", summary = t("commands.undo"), words = { "undo" } },
		{ name = "help", summary = t("commands.help"), words = { "help", "help?" } },
	}, lang)
end

--- Returns the command that runs the developer's own command again.
function commands.again(t: translations.Translate): ui.Command
	return { name = "again", summary = t("commands.again") }
end

--- Returns the command that leaves a question out.
function commands.skipping(t: translations.Translate, lang: string): { ui.Command }
	return in_language({ { name = "skip", summary = t("commands.skip"), words = { "skip" } } }, lang)
end

return commands
