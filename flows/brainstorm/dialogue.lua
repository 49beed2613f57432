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
	--- Several options may be taken, with words of the user's own behind them.
	several: boolean?,
	--- What an empty line means; without it, an empty line is the answer `""`.
	default: string?,
}

local LETTERS = "abcdefghijklmnopqrstuvwxyz"
--- What stands between two letters, and behind letters that words follow.
local JOINERS = { "and", "et", "und", "or", "ou", "oder", "&", "+" }
local BEHIND = string.split("but mais aber pero and et und with avec mit con plus except sauf ausser salvo", " ")

--- How somebody says yes and no, in any language in which questions may come: the frame can be of another one.
local YES = string.split(
	"y,yes,ok,yes it is,right,exactly,o,oui,c'est ca,exactement,ja,j,genau,stimmt,richtig,si,exacto,correcto,esatto,giusto,sim,klopt",
	","
)
local NO = string.split(
	"n,no,nope,not quite,not really,no it is not,no it isn't,non,pas tout a fait,pas vraiment,nein,nicht ganz,nee,no del todo,nao",
	","
)

--- Returns the letter before the option with this number.
function dialogue.letter(index: number): string
	return string.sub(LETTERS, index, index)
end

local function numbered(bare: string, options: { Option }): number?
	local index = tonumber(bare) or string.find(LETTERS, bare, 1, true)
	return if index ~= nil and options[index] ~= nil then index else nil
end

--- Tells whether a line says yes or no, or returns nil where it says something else.
function dialogue.yes_or_no(line: string): boolean?
	local said = string.gsub(text.fold(text.trim(line)), "[%s%.!]+$", "")
	if table.find(YES, said) ~= nil then
		return true
	end
	return if table.find(NO, said) ~= nil then false else nil
end

--- Returns the option that a line names by letter, number, value or label, or nil.
function dialogue.match_option(line: string, options: { Option }): Option?
	local typed = text.fold(text.trim(line))
	local bare = string.match(typed, "^%[?(%w)%]?[%.%)]?$")
	local index = if bare ~= nil then numbered(bare, options) else nil
	if index ~= nil then
		return options[index]
	end
	local answer = dialogue.yes_or_no(line)
	return list.find(options, function(option): boolean
		local is_meant = (answer == true and option.value == "yes") or (answer == false and option.value == "no")
		return is_meant or typed == text.fold(option.value) or typed == text.fold(option.label)
	end)
end

--- Takes letters off the beginning of a line: `a, b and c`, `b) but only …`. Returns the numbers of their options, and the rest.
local function leading_letters(line: string, options: { Option }): ({ number }, string)
	local found: { number } = {}
	local rest, after = line, line
	while true do
		local letter, behind = string.match(rest, "^%s*%(?([a-z])%)?([^%w].*)$")
		if letter == nil then
			letter, behind = string.match(rest, "^%s*%(?([a-z])%)?$"), ""
		end
		local index = if letter ~= nil then numbered(letter :: string, options) else nil
		if index == nil or table.find(found, index) ~= nil then
			-- What looks like one more letter is a word: "a, i think".
			return found, after
		end
		table.insert(found, index)
		after = text.trim(behind :: string)
		local word, more = string.match(after, "^(%S+)%s*(.*)$")
		if word ~= nil and table.find(JOINERS, word) ~= nil and string.match(more :: string, "^%(?[a-z]%)?[^%w]") then
			rest = more :: string
		elseif word ~= nil and table.find(JOINERS, word) ~= nil and string.match(more :: string, "^%(?[a-z]%)?$") then
			rest = more :: string
		elseif string.match(after, "^[,/;+&]%s*%(?[a-z]%)?[^%w]") or string.match(after, "^[,/;+&]%s*%(?[a-z]%)?$") then
			rest = string.sub(after, 2)
		else
			return found, after
		end
	end
end

--- Returns an answer in which letters stand for what was suggested: `a and c` are two suggestions, `b, but only by Ann` is one with
--- a condition. What only looks like a letter (`a supervisor signs`) stays as it is.
function dialogue.resolve(line: string, options: { Option }): string
	local one = dialogue.match_option(line, options)
	if one ~= nil then
		return one.value
	end
	local numbers = string.match(line, "^%s*%d[%d%s,;&+%-]*%a*[%d%s,;&+]*$")
	if numbers ~= nil and #options > 0 then
		local digits: { string } = {}
		local plain = true
		for word in string.gmatch(line, "[^%s,;&+]+") do
			local index = if #word == 1 and tonumber(word) ~= nil then numbered(word, options) else nil
			if index ~= nil and table.find(digits, options[index].value) == nil then
				table.insert(digits, options[index].value)
			elseif table.find(JOINERS, text.fold(word)) == nil then
				plain = false
			end
		end
		if plain and #digits > 1 then
			return table.concat(digits, "; ")
		end
	end
	local found, rest = leading_letters(line, options)
	if #found == 0 then
		return line
	end
	local first = string.match(text.fold(rest), "^(%a+)")
	local follows = string.find(rest, "^[%.,;:!%)%-]") ~= nil or (first ~= nil and table.find(BEHIND, first) ~= nil)
	if rest ~= "" and not follows and #found == 1 then
		return line
	end
	local taken: { string } = {}
	for _, index in found do
		table.insert(taken, options[index].value)
	end
	local joined = table.concat(taken, "; ")
	if rest == "" then
		return joined
	end
	return if string.find(rest, "^[%.,;:!]") then (string.gsub(joined, "%.$", "")) .. rest else `{joined}, {rest}`
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
		local answer = text.trim(said)
		if command ~= nil then
			local signal = self:run_command(command, said)
			if signal ~= nil then
				return nil, signal
			end
		elseif string.sub(answer, 1, 1) == "@" and self:ask_voice(answer) then
			-- One voice was asked, and the question stands.
			continue
		elseif question.several then
			local resolved = dialogue.resolve(answer, options)
			if resolved ~= answer and answer ~= question.default then
				ui.say(self.t("ask.taken", { answer = resolved }))
			end
			return resolved, nil
		else
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
	local named = list.find(options, function(option): boolean
		return option.value == default
	end)
	return dialogue.ask(self, {
		id = id,
		prompt = `{prompt} {option_labels(options)}`,
		options = options,
		closed = true,
		-- What an empty line means is shown in the words of the options.
		default = if named then named.label else default,
	})
end

--- Returns the options whose labels stand under a key of the language file, in this order.
function dialogue.options_of(self: app.App, key: string, values: { string }): { Option }
	return list.map(values, function(value): Option
		return { value = value, label = lang.data(self.lang, `{key}.{value}`) }
	end)
end

return dialogue
