--!strict
--- Working on the parts of a goal: side by side where none needs another, and merged one by one. A part that fails ends no
--- other, but those that need it are not begun.

local before = require("./before")
local checkout = require("./checkout")
local git = require("@nietz/git")
local goal_rows = require("./goal_rows")
local open_attempt = require("./open_attempt")
local progress = require("./progress")
local state = require("./state")
local task = require("@nietz/task")
local text = require("@nietz/text")
local validate = require("./validate")

local parts = {}

--- Works on one part; returns the result id of the attempt that reached it, or nil.
export type Reach = (part: state.Goal) -> number?

type Ready = { part: state.Goal, result_id: number }

type Pool = {
	target: state.Goal,
	parts: { state.Goal },
	reach: Reach,
	--- How many are worked on now. In the parts of a part, the first takes the place of that one, which waits.
	running: number,
	is_nested: boolean,
	--- Those that validate on their own branches and are not merged yet, in the order in which they came.
	ready: { Ready },
	--- Whether somebody merges: whoever does goes on until none is ready.
	merging: boolean,
	--- The result of the attempt that reached the part that was merged last.
	last: number?,
	--- Why no further part is begun.
	stopped: string?,
	--- Whether those that fail are tried again later, and stay open until then.
	again: boolean,
}

--- How often a part is worked on again because what it reached does not fit what was merged meanwhile.
local MAX_REBASES = 2
--- How much of what was tried at a part its parent is told, in bytes.
local MAX_TOLD = 1500

--- Runs the commands of `steps` on what stands on a goal's branch, which no attempt made as it is; they are recorded for an
--- attempt. What fails is told to the goal's next attempts.
function parts.validate(self: state.Session, target: state.Goal, steps: { state.Step }, result_id: number, what: string): boolean
	if #steps == 0 then
		return self.params.accept_unvalidated
	end
	local place = checkout.create(self, target, "v", "", "validation")
	local shot = progress.begin(self, target, what)
	local merged = table.clone(target)
	merged.steps = steps
	local validation = validate.run(self, merged, place.tree, function(doing: string)
		progress.update(self, shot, doing)
	end)
	validate.record_runs(self, validation, result_id)
	validate.remove_worktree(self, place.tree, place.worktree_id)
	progress.finish(self, shot, if validation.passed then "success" else "completed")
	if not validation.passed then
		local lines = {}
		for _, run in validation.runs do
			if run.exit ~= 0 then
				table.insert(lines, `\`{run.command}\` exited with {run.exit}:\n{string.sub(run.output, -MAX_TOLD)}`)
			end
		end
		local told = if #lines > 0 then table.concat(lines, "\n") else tostring(validation.not_run)
		local first = string.upper(string.sub(what, 1, 1)) .. string.sub(what, 2)
		table.insert(target.history, `{first}: {told}`)
	end
	return validation.passed
end

--- Closes what needs a part that failed, by way of others, too.
local function skip_dependents(self: state.Session, pool: Pool, failed: state.Goal, cause: state.Goal)
	for _, part in pool.parts do
		if part.status == "open" and part.stage == "to come" and table.find(part.after, failed) ~= nil then
			part.stage = "not begun"
			goal_rows.close(self, part, "not_started", `sub-goal {cause.id} before it failed`)
			skip_dependents(self, pool, part, cause)
		end
	end
end

local function fail(self: state.Session, pool: Pool, part: state.Goal, why: string)
	part.stage = "failed"
	if not pool.again then
		goal_rows.close(self, part, "failed", why)
		skip_dependents(self, pool, part, part)
	end
end

--- Merges one part onto the goal's branch as that is now. Where the branch has moved since the part was begun, both are first
--- merged on the part's own branch and validated there, so that whatever stands on the goal's branch was validated.
local function merge_part(self: state.Session, pool: Pool, part: state.Goal, result_id: number)
	local target = pool.target
	local why: string?, for_good = nil, false
	if git.commit_of(target.branch) ~= part.base_commit then
		local what = `Take in what was merged since sub-goal {part.id} was begun`
		why, for_good = goal_rows.merge(self, target.branch, target.branch_id, part, what)
		if why == nil and not parts.validate(self, part, part.steps, result_id, "together with what was merged meanwhile") then
			why = part.history[#part.history]
		end
	end
	if why == nil then
		why, for_good = goal_rows.merge(self, part.branch, part.branch_id, target, `Merge sub-goal {part.id}: {part.text}`)
	end
	if why == nil then
		part.stage = "merged"
		pool.last = result_id
		goal_rows.close(self, part, "success", `merged onto {target.branch}`)
		return
	end
	local told = `reached on {part.branch}, and cannot be merged: {why}`
	table.insert(part.history, told)
	if for_good then
		pool.stopped = pool.stopped or why
	elseif part.unmerged < MAX_REBASES then
		part.unmerged += 1
		part.stage = "to come"
		return
	end
	fail(self, pool, part, told)
end

--- Merges what is ready, unless somebody does already.
local function merge_ready(self: state.Session, pool: Pool)
	if pool.merging then
		return
	end
	pool.merging = true
	local ok, failure = pcall(function()
		while #pool.ready > 0 do
			local ready = table.remove(pool.ready, 1) :: Ready
			ready.part.stage = "in work"
			task.scope(`merge of goal {ready.part.id}`, function()
				merge_part(self, pool, ready.part, ready.result_id)
				return nil
			end)
		end
	end)
	pool.merging = false
	if not ok then
		error(failure, 0)
	end
end

--- Takes one of the session's places, if one is free.
local function take_place(self: state.Session, pool: Pool): boolean
	if not (pool.is_nested and pool.running == 0) then
		if self.working >= self.params.parallel then
			return false
		end
		self.working += 1
	end
	pool.running += 1
	return true
end

local function leave_place(self: state.Session, pool: Pool)
	pool.running -= 1
	if not (pool.is_nested and pool.running == 0) then
		self.working -= 1
	end
end

--- Whether what validates a part can say that it is reached: of a part of `--each` without a command of its own, it passes from
--- the start.
local function has_own_proof(self: state.Session, part: state.Goal): boolean
	return part.path == nil or #self.params.each_validate > 0
end

--- Works on one part that was taken, from the goal's branch as it is now.
local function work_on(self: state.Session, pool: Pool, part: state.Goal)
	part.begun += 1
	local name = `{(self.root :: state.Goal).branch}-g{part.id}` .. (if part.begun > 1 then `-{part.begun}` else "")
	local already = false
	local ok, reached = pcall(task.scope, `goal {part.id}`, function(): number?
		goal_rows.open(self, part, name, git.commit_of(pool.target.branch) :: string, pool.target)
		already = has_own_proof(self, part) and before.is_reached(self, part)
		return if already then nil else pool.reach(part)
	end)
	leave_place(self, pool)
	if not ok then
		error(reached, 0)
	elseif already then
		part.stage = "merged"
		goal_rows.close(self, part, "success", "reached already")
	elseif reached == nil then
		fail(self, pool, part, part.history[#part.history] or "nothing was tried")
	else
		part.stage = "reached"
		table.insert(pool.ready, { part = part, result_id = reached })
		merge_ready(self, pool)
	end
end

local function is_free(part: state.Goal): boolean
	if part.status ~= "open" or part.stage ~= "to come" then
		return false
	end
	for _, before in part.after do
		if before.stage ~= "merged" then
			return false
		end
	end
	return true
end

--- Takes as many parts as may be begun now.
local function take(self: state.Session, pool: Pool): { state.Goal }
	pool.stopped = pool.stopped or open_attempt.limit_reached(self)
	local taken = {}
	if pool.stopped ~= nil then
		return taken
	end
	-- From here on nothing waits, so that no part is taken twice.
	for _, part in pool.parts do
		if is_free(part) and take_place(self, pool) then
			part.stage = "in work"
			table.insert(taken, part)
		end
	end
	return taken
end

--- Works on parts until none can be begun. Whoever ends one takes what has become free, and fills the places of those who found
--- nothing to do.
local function drain(self: state.Session, pool: Pool)
	local function work(part: state.Goal)
		local ok, failure: any = pcall(function()
			work_on(self, pool, part)
		end)
		if not ok then
			-- The run ends with this: nothing else is begun.
			pool.stopped = pool.stopped or "the run ended"
			error(failure, 0)
		end
	end
	while true do
		local taken = take(self, pool)
		if #taken == 0 then
			return
		elseif #taken == 1 then
			work(taken[1])
			continue
		end
		local tasks = {}
		for _, part in taken do
			tasks[`from goal {part.id}`] = function(): boolean
				work(part)
				drain(self, pool)
				return true
			end
		end
		task.all(tasks)
	end
end

--- Returns what a goal's next attempt is told of a part that is over.
local function outcome(part: state.Goal): string
	local name = `Part {part.order} "{text.truncate(part.text, 300)}"`
	if part.stage == "merged" then
		return `{name} is reached and merged: its work is in the files.`
	elseif part.stage ~= "failed" then
		return `{name} was not begun.`
	end
	local why = part.history[#part.history] or "nothing was tried"
	local tried = part.history[#part.history - 1]
	return `{name} failed, and none of its work is in the files: {why}`
		.. (if tried then `. What was tried last: {string.sub(tried, 1, MAX_TOLD)}` else "")
end

--- Works on parts of a goal, at most `--parallel` side by side; returns the result id of the attempt that reached the one that was
--- merged last, and whether all are merged. With `again`, those that failed stay open, and are given to another call.
function parts.work(self: state.Session, target: state.Goal, list: { state.Goal }, again: boolean, reach: Reach): (number?, boolean)
	local pool: Pool = {
		target = target,
		parts = list,
		reach = reach,
		running = 0,
		is_nested = target.depth > 1,
		ready = {},
		merging = false,
		last = nil,
		stopped = nil,
		again = again,
	}
	drain(self, pool)
	local all = true
	for _, part in list do
		all = all and part.stage == "merged"
		if part.status == "open" and part.stage == "to come" and not again then
			part.stage = "not begun"
			goal_rows.close(self, part, "not_started", pool.stopped or "no place was free for it")
		end
	end
	if not again then
		for _, part in list do
			table.insert(target.history, outcome(part))
		end
	end
	return pool.last, all
end

return parts
