--!strict
--- What a session begins with: a look at what validates before anybody is paid, its workplace, its record and its root goal.

local base = require("./base")
local clock = require("@nietz/clock")
local comparison = require("./comparison")
local each = require("./each")
local git = require("@nietz/git")
local goal = require("./goal")
local guards = require("../common/guards/guards")
local list = require("../common/list")
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local obstacles = require("../common/obstacles")
local options = require("./options")
local programs = require("../common/programs")
local proof = require("./proof")
local record = require("./record")
local recorded_tools = require("./recorded_tools")
local state = require("./state")
local ui = require("@nietz/ui")
local validate = require("./validate")
local workplace = require("../common/workplace")

local start = {}

--- Returns the items of both lists.
local function join(first: { string }, second: { string }): { string }
	return table.move(second, 1, #second, #first + 1, table.clone(first))
end

--- How the user's own commands ended on what the session starts from.
type Look = {
	runs: { [string]: state.Known },
	--- Whether there are commands, and all of them passed.
	passed: boolean,
	--- Those of `--done-when` that passed.
	done: { string },
}

--- Runs what validates on what the session starts from, and ends the session where that cannot run here: no model could change
--- anything about it.
local function look(params: nietz.Values, place: workplace.Workplace, run: string): Look
	local all = join(params.validate, params.done_when)
	local found: Look = { runs = {}, passed = #all > 0, done = {} }
	if #all == 0 then
		return found
	end
	local commands = list.map(all, function(text): git.Command
		return { shell = text, seconds = params.validation_seconds, repeatable = true }
	end)
	for index, ran in workplace.prepare_validation(place, run, commands) do
		local command = all[index]
		local known = validate.read(place, (place.validation :: workplace.Validation).tree, ran)
		found.runs[command] = known
		found.passed = found.passed and known.exit == 0
		if known.exit == 0 and table.find(params.done_when, command) ~= nil then
			table.insert(found.done, command)
		end
		local why = obstacles.before(place, command, ran, params.goal)
		if why ~= nil then
			workplace.finish(place)
			nietz.usage(`\`{command}\` cannot run here: {why}`, obstacles.HINT)
		end
	end
	return found
end

--- Returns the commands of `--validate` that pass.
local function passing(params: nietz.Values, found: Look): { string }
	local commands: { string } = {}
	for _, command in params.validate do
		if found.runs[command].exit == 0 then
			table.insert(commands, command)
		end
	end
	return commands
end

--- Sees to it that the goal can be proved: returns whether the user accepts that it cannot. Ends the session where it was reached
--- before, by its own proof.
local function require_proof(params: nietz.Values, place: workplace.Workplace, run: string, found: Look, used: proof.Used): boolean
	if #found.done > 0 then
		workplace.finish(place)
		nietz.usage(
			`\`{table.concat(found.done, "`, `")}\` of --done-when passes before anything is changed, so it cannot show that the goal is reached`,
			"give a command that fails now and passes when the goal is reached"
		)
	elseif not found.passed or #params.each > 0 then
		-- Each part of --each has a proof of its own.
		return false
	elseif params.accept_unvalidated then
		ui.say("What validates passes before anything is changed: only the models' own words will say that the goal is reached.")
		return true
	end
	table.insert(params.done_when, proof.find(params, place, run, used))
	return false
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
	params.done_when = table.clone(params.done_when)
	local found = look(params, place, ctx.run)
	local each_parts, wrong, what_to_do = each.find(params, place.start, passing(params, found))
	if wrong ~= nil then
		workplace.finish(place)
		nietz.usage(wrong, what_to_do)
	end
	local used: proof.Used = { tokens = 0, cost = 0 }
	local unproven = require_proof(params, place, ctx.run, found, used)
	local rows = record.new(ctx.run)
	local id = record.add(rows, "session", {
		initial_goal = params.goal,
		model_a = model_a,
		model_b = model_b,
		flags = options.flags(params, ctx.options :: any),
		repo_path = head.top,
		base_branch = base_branch,
	})
	local scripts = proof.scripts(ctx.params.done_when)
	local ran_in = if place.validation ~= nil then place.validation.tree else nil
	local guarded = guards.new(params, place.start, join(ctx.params.validate, scripts), ran_in)
	-- What proves the goal validates it, too.
	params.validate = join(ctx.params.validate, ctx.params.done_when)
	guarded.commands = params.validate
	local self: state.Session = {
		id = id,
		name = ctx.run,
		params = params,
		models = { model_a, model_b },
		record = rows,
		workplace = place,
		tools = {},
		start_commit = place.start,
		guards = guarded,
		baseline = {},
		known = {},
		uncounted_told = false,
		unproven = unproven,
		each = each_parts :: { state.Each },
		working = 0,
		root = nil,
		validations = 0,
		breakdowns = 0,
		tokens = used.tokens,
		counted_tokens = used.tokens,
		cost = used.cost,
		started_at = clock.unix(),
		stop_reason = nil,
	}
	recorded_tools.record_all(self)
	local root = goal.new(self, params.goal, join(ctx.params.validate, params.done_when), nil, 1, nil)
	local baseline: comparison.Runs = {}
	self.root, root.baseline = root, baseline
	for command, known in found.runs do
		validate.remember(self, place.start, command, known)
		baseline[command] = { exit = known.exit, report = known.report }
		if known.report ~= nil then
			self.baseline[command] = known.report
		end
	end
	goal.open(self, root, `nietz/{ctx.run}`, place.start, nil)
	return self, root
end

return start
