--!strict
--- What the command line offers, and what follows from it.

local escalation = require("./escalation")
local nietz = require("@nietz")
local text = require("@nietz/text")
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
	max_attempts = { type = "integer", default = 3, min = 1, max = 10, help = "Fixes to try for each failure" },
	wont_fix = {
		type = "string",
		many = true,
		default = {},
		help = "A test that is known to fail and is left as it is: neither mended nor counted",
	},
	on_escalation = {
		type = "string",
		choices = escalation.ACTIONS,
		default = "human_review",
		help = "What to do where the session cannot go on: show all of it; one round by --senior-model; a report alone; go on with other failures",
	},
	senior_model = { type = "string", help = "The model for `--on-escalation senior_agent`, as provider/model or an alias" },
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
	max_turns = { type = "integer", default = 50, min = 1, max = 1000, help = "Replies of the model in one analysis or fix" },
	idle = { type = "number", default = 120, min = 1, max = 86400, help = "Seconds without a sign of life that end an analysis or a fix" },
	attempt_seconds = { type = "number", default = 1800, min = 1, max = 86400, help = "Seconds that one analysis or fix may take" },
	attempt_tokens = {
		type = "integer",
		default = 1000000,
		min = 1,
		help = "Tokens that one analysis or fix may use; of those from the provider's cache ten count as one",
	},
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

--- Refuses what cannot be meant, before anything is run or paid: a misspelt command, no command that runs the tests, and an
--- action without what it needs. `names` are those of the mode's commands.
function options.check(params: nietz.Values, names: { string })
	local goal = params.goal
	-- A goal is words; one word that is nearly a command's name is that command.
	local near = if goal ~= nil and string.find(goal, "%s") == nil then text.nearest(goal, names) else nil
	if near ~= nil then
		nietz.usage(`\`{goal}\` is no command of debug-memory: did you mean \`{near}\`?`, "a goal is several words")
	elseif params.test == nil or text.trim(params.test) == "" then
		nietz.usage("there is no command that runs the tests", 'nietz run debug-memory --test "cargo test"')
	elseif params.on_escalation == "senior_agent" and params.senior_model == nil then
		nietz.usage("senior_agent needs to know which model that is", "--senior-model PROVIDER/MODEL")
	elseif params.senior_model ~= nil and params.on_escalation ~= "senior_agent" then
		nietz.usage("--senior-model is for `--on-escalation senior_agent`", "give both, or none")
	end
end

return options
