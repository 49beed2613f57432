--!strict
--- How the user is asked anything: every prompt takes commands, asks about slips of the finger, and returns an answer or where
--- a command leads. Apart, so that no prompt understands fewer commands than another.

local app = require("./app")
local commands = require("./commands")
local lang = require("./lang")
local list = require("../common/list")
local text = require("@nietz/text")
local ui = require("@nietz/ui")

local dialogue = {}

export type Option = { value: string, label: string }
export type Question = {
	id: string,
	prompt: string,
	--- What may be answered by its letter or number.
	options: { Option }?,
	--- Only the options are answers.
	closed: boolean?,
	--- What an empty line means; without it, an empty line is the answer `""`.
	default: string?,
}

local LETTERS = "abcdefghijklmnopqrstuvwxyz"

--- Returns the letter before the option with this number.
function dialogue.letter(index: number): string
	return string.sub(LETTERS, index, index)
end

--- Returns the option that a line names by letter, number, value or label, or nil.
function dialogue.match_option(line: string, options: { Option }): Option?
	local typed = text.fold(text.trim(line))
	local bare = string.match(typed, "^%[?(%w)%]?[%.%)]?$")
	if bare ~= nil then
		local index = tonumber(bare) or string.find(LETTERS, bare, 1, true)
		if index ~= nil and options[index] ~= nil then
			return options[index]
		end
	end
	return list.find(options, function(option): boolean
		return typed == text.fold(option.value) or typed == text.fold(option.label)
	end)
end

local function command_usage(self: app.App, name: string): string
	return self.t(`help.commands.{name}`)
end

--- Shows all commands.
function dialogue.show_help(self: app.App)
	local lines: { string } = { self.t("help.title"), "" }
	for _, group in commands.GROUPS do
		table.insert(lines, `**{self.t(`help.groups.{group}`)}**`)
		table.insert(lines, "")
		for _, command in commands.ALL do
			if command.group == group then
				table.insert(lines, `- {command_usage(self, command.name)}`)
			end
		end
		table.insert(lines, "")
	end
	ui.say(table.concat(lines, "\n"))
end

--- Carries out what was parsed when it is a command. Returns whether it was one, and where it leads.
local function apply_command(self: app.App, parsed: commands.Parsed): (boolean, app.Signal?)
	if parsed.kind == "command" then
		if parsed.name == "help" then
			dialogue.show_help(self)
			return true, nil
		end
		return true, self:run_command(parsed.name, parsed.argument)
	elseif parsed.kind == "ambiguous" then
		ui.say(self.t("slip.ambiguous", { typed = parsed.typed, names = table.concat(parsed.names, ", ") }))
		return true, nil
	elseif parsed.kind == "misused" then
		ui.say(self.t("slip.misused", { name = parsed.name, argument = parsed.argument, usage = command_usage(self, parsed.name) }))
		return true, nil
	elseif parsed.kind == "unknown" then
		ui.say(self.t("slip.unknown", { typed = parsed.typed }))
		return true, nil
	end
	return false, nil
end

local function option_labels(options: { Option }): string
	local found: { string } = {}
	for index, option in options do
		table.insert(found, `[{index}] {option.label}`)
	end
	return table.concat(found, "  ")
end

--- Asks what a slip meant, and returns that: the command, the words as they were typed, or what is typed instead.
local function confirm_slip(self: app.App, line: string, parsed: { typed: string, name: string }): commands.Parsed
	local reply = ui.ask({
		id = "slip",
		prompt = self.t("slip.confirm", { typed = parsed.typed, name = parsed.name }),
		default = "y",
	})
	local folded = text.fold(text.trim(reply))
	if table.find({ "y", "yes", "o", "oui" }, folded) ~= nil then
		return { kind = "command", name = parsed.name, argument = "" }
	elseif table.find({ "n", "no", "non" }, folded) ~= nil then
		return { kind = "answer", text = text.trim(line) }
	end
	local again = commands.parse(reply)
	-- One such question is enough: a second slip is taken as an answer.
	return if again.kind == "slip" then { kind = "answer", text = text.trim(reply) } else again
end

--- Asks until there is an answer or a command leads elsewhere. Returns the answer (an option's value where one was
--- named), or nil and the signal.
function dialogue.ask(self: app.App, question: Question): (string?, app.Signal?)
	local options = question.options or {}
	local complete = commands.names()
	while true do
		local line = ui.ask({
			id = question.id,
			prompt = question.prompt,
			default = question.default,
			optional = if question.default == nil then true else nil,
			complete = complete,
		})
		local option = dialogue.match_option(line, options)
		if option ~= nil then
			return option.value, nil
		end
		local parsed = commands.parse(line)
		if parsed.kind == "slip" then
			parsed = confirm_slip(self, line, parsed)
		end
		local was_command, signal = apply_command(self, parsed)
		if signal ~= nil then
			return nil, signal
		elseif not was_command then
			local said = if parsed.kind == "answer" then parsed.text else text.trim(line)
			local named = dialogue.match_option(said, options)
			if named ~= nil then
				return named.value, nil
			elseif not question.closed then
				return said, nil
			end
			ui.say(self.t("ask.not_an_option", { list = option_labels(options) }))
		end
	end
end

--- Asks for one of some options, which stand in the prompt, and returns its value.
function dialogue.choose(self: app.App, id: string, prompt: string, options: { Option }, default: string): (string?, app.Signal?)
	return dialogue.ask(self, {
		id = id,
		prompt = `{prompt} {option_labels(options)}`,
		options = options,
		closed = true,
		default = default,
	})
end

--- Returns the options whose labels stand under a key of the language file, in this order.
function dialogue.options_of(self: app.App, key: string, values: { string }): { Option }
	return list.map(values, function(value): Option
		return { value = value, label = lang.data(self.lang, `{key}.{value}`) }
	end)
end

return dialogue
