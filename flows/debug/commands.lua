--!strict
--- What may be typed in place of an answer: the words that end a session, those that ask for something beside it, and the one that
--- leaves a question out. None of them is an answer, and only a hint asks a model.

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
	"trouvé",
	"j'ai trouvé",
	"je l'ai trouvé",
	"c'est trouvé",
	"résolu",
	"j'ai résolu",
	"je l'ai résolu",
	"c'est résolu",
}
local GIVE_UP = {
	"I give up",
	"OK, I give up",
	"give up",
	"give up?",
	"j'abandonne",
	"je renonce",
	"je laisse tomber",
	"abandonner",
}

--- Returns the commands of a turn, in the language of `t`.
function commands.of_turn(t: translations.Translate): { ui.Command }
	return {
		{ name = "solved", summary = t("commands.solved"), text = `[{t("commands.how")}]`, words = SOLVED },
		{ name = "exit", summary = t("commands.exit"), words = { "exit", "quit", "quitter", "sortir" } },
		{ name = "give-up", summary = t("commands.give_up"), words = GIVE_UP },
		{ name = "hint", summary = t("commands.hint"), words = { "hint", "hint?", "a hint", "indice", "un indice" } },
		{ name = "recap", summary = t("commands.recap"), words = { "recap", "where was I" } },
		{ name = "undo", summary = t("commands.undo"), words = { "undo", "annuler" } },
		{ name = "help", summary = t("commands.help"), words = { "help", "help?", "aide" } },
	}
end

--- Returns the command that runs the developer's own command again.
function commands.again(t: translations.Translate): ui.Command
	return { name = "again", summary = t("commands.again") }
end

--- Returns the command that leaves a question out.
function commands.skipping(t: translations.Translate): { ui.Command }
	return { { name = "skip", summary = t("commands.skip"), words = { "skip", "passer" } } }
end

return commands
