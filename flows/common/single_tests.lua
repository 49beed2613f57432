--!strict
--- How one test alone is run, derived from the user's own command: models look at a failure more closely that way. Only the
--- runner's own filter is added, and only to a command of plain words, which needs no shell.

local command_words = require("./command_words")
local git = require("@nietz/git")

local single_tests = {}

--- How a runner takes one test: what is shown to a model, and the options that may stand there.
export type Form = {
	--- The user's command as words.
	words: { string },
	--- What may follow, as an example.
	example: string,
	options: { string },
}

type Rule = {
	--- Whether the command runs this runner; its words are between blanks, with a blank at both ends.
	patterns: { string },
	example: string,
	options: { string },
}

--- In the order in which they are tried; patterns are Lua's.
local RULES: { Rule } = {
	{ patterns = { "[ /]nextest run " }, example = "NAME", options = {} },
	{ patterns = { "[ /]cargo test ", "[ /]cargo %+[^ ]+ test " }, example = "NAME", options = { "--nocapture" } },
	{ patterns = { "[ /]go test " }, example = "-run '^NAME$'", options = { "-run", "-v", "-count" } },
	{ patterns = { "[ /]pytest ", "[ /]py%.test " }, example = "-k NAME", options = { "-k", "-x", "-v", "-vv", "-s" } },
	{ patterns = { "%-m unittest " }, example = "-k NAME", options = { "-k", "-v", "-f" } },
	{ patterns = { "[ /]jest " }, example = "-t 'NAME'", options = { "-t", "--testNamePattern" } },
	{ patterns = { "[ /]vitest " }, example = "-t 'NAME'", options = { "-t", "--testNamePattern" } },
	{ patterns = { "[ /]mocha " }, example = "-g 'NAME'", options = { "-g", "--grep" } },
	{ patterns = { "[ /]node .*%-%-test " }, example = "--test-name-pattern 'NAME'", options = { "--test-name-pattern" } },
	{ patterns = { "[ /]rspec " }, example = "-e 'NAME'", options = { "-e", "--example" } },
	{ patterns = { "[ /]phpunit " }, example = "--filter NAME", options = { "--filter" } },
	{ patterns = { "[ /]ctest " }, example = "-R NAME", options = { "-R", "-V" } },
	{ patterns = { "[ /]mvnw? .*test " }, example = "-Dtest=CLASS#METHOD", options = { "-Dtest" } },
	{ patterns = { "[ /]gradlew? .*test " }, example = "--tests NAME", options = { "--tests" } },
	{ patterns = { "[ /]dotnet test " }, example = "--filter NAME", options = { "--filter" } },
}

--- Returns whether words behind a runner's own name are options alone: then a file or a path may follow.
local function has_options_alone(words: { string }, runner: string): boolean
	local behind = false
	for _, word in words do
		if behind and string.sub(word, 1, 1) ~= "-" then
			return false
		end
		behind = behind or string.find(word, runner) ~= nil
	end
	return behind
end

--- Returns how a command runs one test alone, or nil where that is not known or needs a shell.
function single_tests.derive(command: string): Form?
	-- The same letters that the host takes for plain.
	if string.find(command, "^[%w%-_%./:=,%+@%% ]+$") == nil or string.find(command, "  ", 1, true) or string.find(command, "^[^ ]*=") then
		return nil
	end
	local words = string.split(command, " ")
	local line = ` {command} `
	for _, rule in RULES do
		for _, pattern in rule.patterns do
			if string.find(line, pattern) == nil then
				continue
			end
			local example, options = rule.example, rule.options
			if string.find(pattern, "py", 1, true) and has_options_alone(words, "py%.?test$") then
				example = "PATH::NAME"
			elseif pattern == "%-m unittest " and has_options_alone(words, "^unittest$") then
				example = "MODULE.CLASS.NAME"
			elseif options[1] == "--test-name-pattern" and not has_options_alone(words, "node$") then
				-- Node reads what stands behind a file as the file's own.
				return nil
			end
			return { words = words, example = example, options = options }
		end
	end
	return nil
end

--- Returns the example that a model is shown.
function single_tests.describe(form: Form): string
	return `{table.concat(form.words, " ")} {form.example}`
end

local function is_allowed(form: Form, word: string): boolean
	if string.sub(word, 1, 1) ~= "-" then
		return string.sub(word, 1, 1) ~= "/" and string.find(word, "..", 1, true) == nil
	end
	for _, option in form.options do
		if word == option or string.sub(word, 1, #option + 1) == option .. "=" then
			return true
		end
	end
	return false
end

--- Returns what to run for a model's command that asks for a single test in this form, or nil where it is something else.
function single_tests.resolve(form: Form, command: string): git.Command?
	local words = command_words.split(command)
	if words == nil or #words <= #form.words then
		return nil
	end
	for index, word in words do
		local fits = if index <= #form.words then word == form.words[index] else is_allowed(form, word)
		if not fits then
			return nil
		end
	end
	return { program = words }
end

--- Returns how each of these commands runs one test alone, as an example; of those alone where that is known.
function single_tests.examples(commands: { string }): { string }
	local examples = {}
	for _, whole in commands do
		local form = single_tests.derive(whole)
		if form ~= nil then
			table.insert(examples, single_tests.describe(form))
		end
	end
	return examples
end

--- Returns what to run for a model's command that asks for a single test of one of these commands, or nil.
function single_tests.find(commands: { string }, command: string): git.Command?
	for _, whole in commands do
		local form = single_tests.derive(whole)
		local single = if form ~= nil then single_tests.resolve(form, command) else nil
		if single ~= nil then
			return single
		end
	end
	return nil
end

return single_tests
