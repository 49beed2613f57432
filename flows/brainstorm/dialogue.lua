--!strict
--- How the user is asked anything: every prompt offers the commands, and returns an answer or where a command leads. Apart,
--- so that no prompt offers fewer commands than another.

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

local function option_labels(options: { Option }): string
	local found: { string } = {}
	for index, option in options do
		table.insert(found, `[{index}] {option.label}`)
	end
	return table.concat(found, "  ")
end

--- Asks until there is an answer or a command leads elsewhere. Returns the answer (an option's value where one was
--- named), or nil and the signal.
function dialogue.ask(self: app.App, question: Question): (string?, app.Signal?)
	local options: { Option } = question.options or {}
	local taken: { string } = {}
	for _, option in options do
		table.insert(taken, option.value)
		table.insert(taken, option.label)
	end
	local offered = commands.offered(self.t, taken)
	while true do
		local said, command = ui.ask({
			id = question.id,
			prompt = question.prompt,
			default = question.default,
			optional = if question.default == nil then true else nil,
			complete = commands.names(),
			commands = offered,
		})
		if command ~= nil then
			local signal = self:run_command(command, said)
			if signal ~= nil then
				return nil, signal
			end
		else
			local answer = text.trim(said)
			local option = dialogue.match_option(answer, options)
			if option ~= nil then
				return option.value, nil
			elseif not question.closed then
				return answer, nil
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
