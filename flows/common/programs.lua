--!strict
--- Which commands models may run in a worktree. Apart, because tools, prompts and validation must agree on it.

local command_words = require("./command_words")
local git = require("@nietz/git")
local nietz = require("@nietz")
local single_tests = require("./single_tests")

local programs = {}

--- The shell that models have where the host lets them run it, which it does in a sandbox alone.
programs.SHELL = "sh"

--- Whether models have a shell in this run.
function programs.has_shell(ctx: nietz.Context): boolean
	return not ctx.params.no_run and table.find(ctx.commands, programs.SHELL) ~= nil
end

--- Returns what to pass to `exec` for a command that a model wants to run, or nil and why it is not allowed.
function programs.resolve(params: nietz.Values, command: string): (git.Command?, string?)
	for _, name in { "validate", "run" } do
		if table.find(params[name], command) ~= nil then
			return { shell = command }, nil
		end
	end
	local words = command_words.split(command)
	if words ~= nil and table.find(params.run, words[1]) ~= nil then
		return { program = words }, nil
	elseif params.shell then
		return { program = { programs.SHELL, "-c", command } }, nil
	end
	local single = single_tests.find(params.validate, command)
	if single ~= nil then
		return single, nil
	end
	local known = {}
	for _, program in params.run do
		table.insert(known, `\`{program}\` with any arguments`)
	end
	for _, whole in params.validate do
		table.insert(known, `exactly \`{whole}\``)
	end
	for _, example in single_tests.examples(params.validate) do
		table.insert(known, `single tests as \`{example}\``)
	end
	local which = if #known > 0 then table.concat(known, ", ") else "none"
	return nil, `the command \`{command}\` is not allowed, or needs a shell. Allowed: {which}`
end

--- Returns the commands that a model may run as a text for its prompt, or nil where there is none.
function programs.describe_allowed(params: nietz.Values): string?
	if params.shell then
		return "any line of a shell, in a sandbox"
	end
	local known = {}
	for _, program in params.run do
		table.insert(known, `\`{program}\`` .. (if string.find(program, " ", 1, true) then "" else " with any arguments"))
	end
	for _, whole in params.validate do
		table.insert(known, `\`{whole}\``)
	end
	local singles = {}
	for _, example in single_tests.examples(params.validate) do
		table.insert(singles, `\`{example}\``)
	end
	local single = if #singles > 0 then `, and single tests as {table.concat(singles, ", ")}` else ""
	return if #known > 0 then table.concat(known, ", ") .. single else nil
end

return programs
