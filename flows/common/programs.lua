--!strict
--- Which commands models may run in a worktree. Apart, because tools, prompts and validation must agree on it.

local git = require("@nietz/git")
local nietz = require("@nietz")

local programs = {}

--- Splits a command into words, as a shell splits quoted ones; nil where it needs a shell.
function programs.split_words(command: string): { string }?
	local words: { string } = {}
	local word: string?, quote: string? = nil, nil
	for at = 1, #command do
		local letter = string.sub(command, at, at)
		if quote ~= nil then
			if letter == quote then
				quote = nil
			else
				word = (word or "") .. letter
			end
		elseif letter == "'" or letter == '"' then
			quote, word = letter, word or ""
		elseif letter == " " or letter == "\t" then
			if word ~= nil then
				table.insert(words, word)
				word = nil
			end
		elseif string.find("|&;<>()$`\\*?[#~\n", letter, 1, true) ~= nil then
			return nil
		else
			word = (word or "") .. letter
		end
	end
	if quote ~= nil then
		return nil
	end
	if word ~= nil then
		table.insert(words, word)
	end
	return if #words > 0 then words else nil
end

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
	local words = programs.split_words(command)
	if words ~= nil and table.find(params.run, words[1]) ~= nil then
		return { program = words }, nil
	elseif params.shell then
		return { program = { programs.SHELL, "-c", command } }, nil
	end
	local known = {}
	for _, program in params.run do
		table.insert(known, `\`{program}\` with any arguments`)
	end
	for _, whole in params.validate do
		table.insert(known, `exactly \`{whole}\``)
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
	return if #known > 0 then table.concat(known, ", ") else nil
end

return programs
