--!strict
--- What the command line offers, and what follows from it.

local nietz = require("@nietz")
local workplace = require("../common/workplace")

local options = {}

--- How a person is named in a commit.
local PERSON = "^[^<>\\n]+ <[^<>@\\s]+@[^<>@\\s]+>$"
local PERSON_MEANS = "a name with an address: 'Ada Lovelace <ada@example.org>'"

options.PARAMS = {
	goal = { type = "string", positional = true, help = "What to achieve" },
	validate = {
		type = "string",
		many = true,
		default = {},
		help = "A shell command that exits with 0 when the goal is reached; several run in order",
	},
	done_when = {
		type = "string",
		many = true,
		default = {},
		help = "A shell command that fails now and exits with 0 when the goal is reached: for goals whose tests pass before and after",
	},
	tests_may_change = {
		type = "string",
		many = true,
		default = {},
		help = "Tests and their settings that the work may change, such as 'tests/**': each that ran before must still run, or be answered by a new one",
	},
	fail_fast = { type = "boolean", default = false, help = "End a validation at the first command that fails" },
	continue = {
		type = "string",
		choices = { "best", "never" },
		default = "best",
		help = "Whether the next attempt goes on from the best one that failed, if that is better than what was there",
	},
	run = {
		type = "string",
		many = true,
		default = {},
		help = "A program that models may run with any arguments, such as cargo; or one whole command",
	},
	no_run = {
		type = "boolean",
		default = false,
		help = "Models run only the commands of --validate and --run, and no lines of a shell in the sandbox",
	},
	protect = {
		type = "string",
		many = true,
		default = {},
		help = "Files that validation takes from the start, such as 'tests/**'; what its commands name is protected anyway",
	},
	model_a = { type = "model", help = "The model that shoots first [default: the run's model]" },
	model_b = { type = "model", help = "The model that breaks goals down first [default: model A]" },
	shots = { type = "integer", default = 1, min = 1, max = 10, help = "Attempts at a goal side by side, of which the best is kept" },
	shot_model = {
		type = "string",
		many = true,
		default = {},
		help = "A model for the shots behind the first of those side by side, in turn",
	},
	shot_temperature = {
		type = "number",
		many = true,
		default = {},
		min = 0,
		max = 2,
		help = "A temperature for shots side by side, in turn",
	},
	plan_first = { type = "boolean", default = false, help = "Break the goal down before the first shot" },
	each = {
		type = "string",
		many = true,
		default = {},
		help = "Files or folders, such as 'src/modules/*', of which each is a part of the goal",
	},
	each_validate = {
		type = "string",
		many = true,
		default = {},
		help = "What validates one part of --each, with {path} for its path [default: what of --validate passes now]",
	},
	parallel = { type = "integer", default = 4, min = 1, max = 32, help = "Parts that are worked on side by side" },
	max_tools = { type = "integer", default = 200, min = 1, max = 1000, help = "Tool calls of one attempt" },
	max_turns = {
		type = "integer",
		default = 100,
		min = 1,
		max = 1000,
		help = "Replies of the model in one attempt; each may call many tools",
	},
	max_breakdowns = { type = "integer", default = 5, min = 0, max = 50, help = "Breakdowns in all, and on the way to any goal" },
	max_depth = { type = "integer", default = 5, min = 1, max = 10, help = "How deep sub-goals go" },
	idle = { type = "number", default = 120, min = 1, max = 86400, help = "Seconds without a sign of life that end an attempt" },
	attempt_seconds = { type = "number", default = 3600, min = 1, max = 86400, help = "Seconds that one attempt may take" },
	session_seconds = { type = "number", default = 86400, min = 1, max = 864000, help = "Seconds after which no further attempt begins" },
	attempt_tokens = {
		type = "integer",
		default = 2000000,
		min = 1,
		help = "Tokens that one attempt may use; of those from the provider's cache ten count as one",
	},
	session_tokens = {
		type = "integer",
		default = 20000000,
		min = 1,
		help = "Tokens, counted in the same way, after which no further attempt begins",
	},
	attempt_cost = { type = "number", min = 0, help = "US dollars that one attempt may cost" },
	session_cost = { type = "number", min = 0, help = "US dollars after which no further attempt begins" },
	command_seconds = { type = "number", default = 600, min = 1, max = 86400, help = "Seconds that a command of a model may take" },
	validation_seconds = { type = "number", default = 1800, min = 1, max = 86400, help = "Seconds that a validation command may take" },
	accept_unvalidated = { type = "boolean", default = false, help = "Let a goal without validation succeed" },
	memory = { type = "boolean", default = true, help = "Tell the next shot nothing of the debug memory" },
	base = { type = "string", help = "The branch to start from [default: what is checked out]" },
	author = {
		type = "string",
		pattern = PERSON,
		pattern_means = PERSON_MEANS,
		help = "Who is the author of the commits [default: nietz]",
	},
	co_authored_by = {
		type = "string",
		many = true,
		default = {},
		pattern = PERSON,
		pattern_means = PERSON_MEANS,
		help = "Who is named below each commit's message",
	},
	squash = { type = "boolean", default = false, help = "Offer the result as one commit, on a branch of its own" },
	report = { type = "string", help = "A new Markdown file for the report, as it fits a pull request" },
	patch = { type = "string", help = "A new file for the patch from the start to the result" },
	list = { type = "boolean", default = false, help = "List the sessions of this workspace" },
} :: { [string]: nietz.Param }

for name, param in workplace.PARAMS do
	options.PARAMS[name] = param
end

--- What `flags` in the record holds: everything but the goal and the models, which have columns of their own; and what the user
--- gave the run beside its params, such as the network.
function options.flags(params: nietz.Values, host: nietz.Values): nietz.Values
	local flags: nietz.Values = { host = host }
	for name, value in params do
		if name ~= "goal" and name ~= "model_a" and name ~= "model_b" and name ~= "list" then
			flags[name] = value
		end
	end
	return flags
end

--- Raises where there is no goal.
function options.require_goal(params: nietz.Values)
	if params.goal == nil or params.goal == "" then
		nietz.fail("there is no goal", 'nietz run shots-on-goal "replace chrono by jiff" --validate "cargo test"')
	end
end

return options
