--!strict
--- What a session begins with: a look at what validates before anybody is paid, its workplace, its record and its root goal.

local base = require("./base")
local clock = require("@nietz/clock")
local git = require("@nietz/git")
local goal = require("./goal")
local list = require("../common/list")
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local obstacles = require("../common/obstacles")
local options = require("./options")
local programs = require("../common/programs")
local record = require("./record")
local recorded_tools = require("./recorded_tools")
local repo_listing = require("../common/repo_listing")
local state = require("./state")
local ui = require("@nietz/ui")
local workplace = require("../common/workplace")

local start = {}

--- Runs the validation on what the session starts from, and ends the session where that cannot run here: no model could change
--- anything about it.
local function try_validation(params: nietz.Values, place: workplace.Workplace, run: string)
	if #params.validate == 0 then
		return
	end
	local commands = list.map(params.validate, function(text): git.Command
		return { shell = text, seconds = params.validation_seconds, repeatable = true }
	end)
	local runs = workplace.prepare_validation(place, run, commands)
	local passed = true
	for index, ran in runs do
		passed = passed and ran.over == "exit" and ran.exit == 0
		local why = obstacles.before(place, params.validate[index], ran, params.goal)
		if why ~= nil then
			workplace.finish(place)
			nietz.usage(
				`\`{params.validate[index]}\` cannot run here: {why}`,
				"--setup CMD installs what it needs, once, for all worktrees"
			)
		end
	end
	if passed then
		ui.say("What validates passes before anything is changed: only the models' own words will say that the goal is reached.")
	end
end

--- Prepares a session: its workplace, its record and its root goal.
function start.session(ctx: nietz.Context): (state.Session, state.Goal)
	local params = table.clone(ctx.params)
	params.shell = programs.has_shell(ctx)
	local head = git.head()
	local model_a = llm.model(params.model_a)
	local model_b = llm.model(params.model_b or params.model_a)
	local base_branch = base.branch(params.base, head)
	local place = workplace.new(params, ctx.run)
	try_validation(params, place, ctx.run)
	local rows = record.new(ctx.run)
	local id = record.add(rows, "session", {
		initial_goal = params.goal,
		model_a = model_a,
		model_b = model_b,
		flags = options.flags(params, ctx.options :: any),
		repo_path = head.top,
		base_branch = base_branch,
	})
	local self: state.Session = {
		id = id,
		name = ctx.run,
		params = params,
		models = { model_a, model_b },
		record = rows,
		workplace = place,
		tools = {},
		start_commit = place.start,
		protected_globs = programs.protected_globs(params, place.start),
		repo_listing = repo_listing.render(place.start),
		root = nil,
		goals = 0,
		validations = 0,
		breakdowns = 0,
		tokens = 0,
		cost = 0,
		started_at = clock.unix(),
		stop_reason = nil,
	}
	recorded_tools.record_all(self)
	local root = goal.new(self, params.goal, params.validate, nil, 1, nil)
	self.root = root
	goal.open(self, root, `nietz/{ctx.run}`, place.start, nil)
	return self, root
end

return start
