--!strict
--- What the command line offers, and what follows from it.

local nietz = require("@nietz")
local workplace = require("../common/workplace")

local options = {}

--- Coverage goals in percent, by the kind of change; a refactoring is held to what was covered before.
options.COVERAGE = { bug_fix = 100, new_function = 80, api_endpoint = 90 } :: { [string]: number }

options.PARAMS = {
	goal = { type = "string", positional = true, help = "What is to be reached [default: that the tests pass]" },
	test = { type = "string", help = "The command that runs the tests, such as 'cargo test'" },
	junit = { type = "string", help = "The JUnit XML file that the command writes, below the repository" },
	lcov = { type = "string", help = "The LCOV file that the command writes: says which changed lines are covered" },
	file = { type = "string", help = "The file that this is about [default: where the first cause is found]" },
	kind = {
		type = "string",
		choices = { "bug_fix", "new_function", "refactor", "api_endpoint" },
		default = "bug_fix",
		help = "The kind of change, which says how much of it must be covered",
	},
	coverage = {
		type = "number",
		min = 0,
		max = 100,
		help = "Percent to cover [default: by kind: 100 of a fix's lines, 80, as before, 90]",
	},
	max_attempts = { type = "integer", default = 3, min = 1, max = 10, help = "Fixes to try" },
	fix = { type = "boolean", default = true, help = "Analyse alone: change nothing" },
	memory = { type = "boolean", default = true, help = "Offer the model nothing of earlier sessions" },
	run = {
		type = "string",
		many = true,
		default = {},
		help = "A program that the model may run with any arguments, such as cargo; or one whole command",
	},
	protect = {
		type = "string",
		many = true,
		default = {},
		help = "Files that tests take from the start, such as 'tests/**'; what the command names is protected anyway",
	},
	max_tools = { type = "integer", default = 50, min = 1, max = 1000, help = "Tool calls of one analysis or fix" },
	idle = { type = "number", default = 120, min = 1, max = 86400, help = "Seconds without a sign of life that end an analysis or a fix" },
	attempt_seconds = { type = "number", default = 1800, min = 1, max = 86400, help = "Seconds that one analysis or fix may take" },
	attempt_tokens = { type = "integer", default = 1000000, min = 1, help = "Tokens that one analysis or fix may use" },
	test_seconds = { type = "number", default = 120, min = 5, max = 600, help = "Seconds that the tests may take" },
} :: { [string]: nietz.Param }

for name, param in workplace.PARAMS do
	options.PARAMS[name] = param
end

--- Returns the limits of tools and commands, by the names that they have in `common/`.
function options.tool_limits(params: nietz.Values): nietz.Values
	local limits = table.clone(params)
	limits.validate = { params.test }
	limits.command_seconds = params.test_seconds
	return limits
end

--- Raises where there is no command that runs the tests.
function options.require_command(params: nietz.Values)
	if params.test == nil or params.test == "" then
		nietz.fail("there is no command that runs the tests", 'nietz run debug-memory --test "cargo test"')
	end
end

return options
