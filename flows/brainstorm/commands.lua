--!strict
--- The commands that every prompt offers. Which line is a command, and which an answer, nietz tells; what each does stands in
--- `actions.lua`, and its words for people in the language files. Pure, so that it can be tested.

local lang = require("./lang")
local list = require("../common/list")
local text = require("@nietz/text")
local ui = require("@nietz/ui")

local commands = {}

export type Command = {
	name: string,
	--- What may follow it: a text (with its slash only), a number, or one of some words. `words` must follow, and `numbers` too.
	argument: ("text" | "number" | "words" | "numbers")?,
	choices: { string }?,
	--- Other words for it, French ones among them.
	aliases: { string }?,
}

--- In the order of `/help`: moving on, thinking differently, what holds, other voices, saving and ending.
commands.ALL = {
	{ name = "continue", aliases = { "continuer", "next" } },
	{ name = "back", argument = "number", aliases = { "retour" } },
	{ name = "dive", argument = "text" },
	{ name = "pivot", argument = "text" },
	{ name = "diverge" },
	{ name = "converge" },
	{ name = "status", aliases = { "statut" } },
	{ name = "scoring" },
	{ name = "energy", aliases = { "énergie" } },
	{ name = "plan-preview" },
	{ name = "sessions" },
	{ name = "technique", argument = "text" },
	{ name = "framework", choices = { "moscow", "5whys", "swot" } },
	{ name = "idea", argument = "words" },
	{ name = "decide", argument = "words" },
	{ name = "open", argument = "words" },
	{ name = "fact", argument = "words" },
	{ name = "strike", argument = "numbers" },
	{ name = "rate", argument = "numbers" },
	{ name = "ledger" },
	{ name = "approaches" },
	{ name = "premortem" },
	{ name = "spike", argument = "text" },
	{ name = "security-check" },
	{ name = "modes" },
	{ name = "mode", argument = "text", choices = { "auto" } },
	{ name = "party", argument = "text", choices = { "exit" } },
	{ name = "panel", choices = { "debate", "socratic", "exit" } },
	{ name = "save", aliases = { "checkpoint" } },
	{ name = "finish", aliases = { "finir", "terminer" } },
	{ name = "quit", aliases = { "exit", "pause", "quitter" } },
	{ name = "abandon", aliases = { "abandonner" } },
	{ name = "help", aliases = { "aide", "?" } },
} :: { Command }

--- Returns all names: what Tab completes without a slash.
function commands.names(): { string }
	return list.map(commands.ALL, function(command): string
		return command.name
	end)
end

--- Returns the commands as a prompt in this language offers them. `taken` are what the prompt's own options are called: these
--- mean the options there, and the command needs its slash.
function commands.offered(t: lang.Say, taken: { string }): { ui.Command }
	local folded = list.map(taken, text.fold)
	return list.map(commands.ALL, function(command): ui.Command
		local words = { command.name }
		for _, alias in command.aliases or {} :: { string } do
			table.insert(words, alias)
		end
		local free: { string } = {}
		for _, word in words do
			if command.argument ~= "words" and table.find(folded, text.fold(word)) == nil then
				table.insert(free, word)
			end
		end
		return {
			name = command.name,
			summary = t(`commands.{command.name}`),
			text = if command.argument == "text"
				then `[{t(`arguments.{command.name}`)}]`
				elseif command.argument == "words" then t(`arguments.{command.name}`)
				else nil,
			number = if command.argument == "number"
				then `[{t(`arguments.{command.name}`)}]`
				elseif command.argument == "numbers" then `{t(`arguments.{command.name}`)}…`
				else nil,
			choices = command.choices,
			words = if #free > 0 then free else nil,
		}
	end)
end

return commands
