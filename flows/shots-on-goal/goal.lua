--!strict
--- Working on a goal: shots by one model, breakdowns by the other, and the parts that those give, until it is reached or nothing is
--- left to try.

local breakdown = require("./breakdown")
local each = require("./each")
local goal_rows = require("./goal_rows")
local open_attempt = require("./open_attempt")
local parts = require("./parts")
local shots = require("./shots")
local show = require("./show")
local state = require("./state")
local ui = require("@nietz/ui")

local goal = {}

goal.new = goal_rows.new
goal.open = goal_rows.open
goal.close = goal_rows.close

--- Has a model break the goal down; returns the parts, or nil where that gave none.
local function break_down(self: state.Session, target: state.Goal, model: string, parents: { state.Goal }): { state.Goal }?
	self.breakdowns += 1
	local outcome = breakdown.run(self, target, model, parents)
	ui.say(show.attempt_line(target, outcome))
	target.breakdowns_above += 1
	if outcome.value == nil then
		table.insert(target.history, `The breakdown by {model} failed: {outcome.detail}`)
		return nil
	end
	local given: { state.Goal } = {}
	for index, sub in outcome.value do
		local child = goal_rows.new(self, sub.goal, sub.validation, target, #target.children + 1, outcome.id)
		child.breakdowns_above = target.breakdowns_above
		local needed: { number } = sub.after or { index - 1 }
		for _, before in needed do
			-- The first needs none.
			table.insert(child.after, given[before])
		end
		table.insert(given, child)
		table.insert(target.children, child)
	end
	return given
end

--- Returns why a goal may not be broken down any more, or nil.
local function breakdown_limit(self: state.Session, target: state.Goal): string?
	local most = self.params.max_breakdowns
	if self.breakdowns >= most then
		return `all {most} breakdowns are used`
	elseif target.breakdowns_above >= most then
		return `{most} breakdowns led to this goal`
	elseif target.depth >= self.params.max_depth then
		return `sub-goals would be deeper than {self.params.max_depth}`
	end
	return open_attempt.limit_reached(self)
end

local function stop(self: state.Session, target: state.Goal, why: string): nil
	table.insert(target.history, why)
	self.stop_reason = why
	ui.say(`✗ goal {target.id}: {why}`)
	return nil
end

local function reached(target: state.Goal, result_id: number): number
	ui.say(`✓ goal {target.id}: {target.text}`)
	return result_id
end

--- Takes shots at a goal and merges the best. Returns the result id of one that is merged, or nil; and why the goal is given up,
--- if it is.
local function shoot(self: state.Session, target: state.Goal, model: string, parents: { state.Goal }): (number?, string?)
	local outcomes = shots.take(self, target, model, parents)
	local best = outcomes[1]
	if best.status == "success" then
		local what = `Merge attempt {best.id} at goal {target.id}: {target.text}`
		local conflict, for_good = goal_rows.merge(self, best.branch, best.branch_id, target, what)
		if conflict == nil then
			return best.result_id, nil
		end
		local why = `attempt {best.id} validates on {best.branch}, and cannot be merged: {conflict}`
		if for_good then
			return nil, why
		end
		table.insert(target.history, why)
	end
	local stalled = shots.find_stalled(target, outcomes)
	if stalled ~= nil then
		return nil, `stalled: attempt {stalled.id} left the same files with the same result as one before`
	end
	return nil, nil
end

--- Works on a goal until it is reached, and returns the result id of the attempt that reached it, or nil; the caller closes
--- the goal. `first` is the number of the model that shoots at it; the other breaks it down, and is the first to shoot at each of
--- the parts. Where those do not reach it, it is `first`'s turn again.
function goal.reach(self: state.Session, target: state.Goal, first: number, parents: { state.Goal }): number?
	local other = 3 - first
	local above = table.clone(parents)
	table.insert(above, target)
	local function reach_by(model: number): parts.Reach
		return function(part)
			return goal.reach(self, part, model, above)
		end
	end
	local is_root = target.depth == 1
	ui.say(`• goal {target.id}: {target.text}`)
	local undivided = if self.params.max_breakdowns > 0 then breakdown.impossible(self.params) else nil
	if is_root and undivided ~= nil then
		ui.say(`The goal will not be broken down: {undivided}. Both models take shots at it.`)
	end
	if is_root and #self.each > 0 then
		local last, missing = each.work(self, target, reach_by(first))
		if missing ~= nil then
			return stop(self, target, missing)
		elseif last == nil then
			return stop(self, target, "all parts were reached before anything was changed: there is nothing to do")
		elseif parts.validate(self, target, each.steps(target), last, "all sub-goals together") then
			return reached(target, last)
		end
	end
	local plans = is_root and self.params.plan_first and undivided == nil
	local rounds, shooter = 0, first
	while true do
		local full = open_attempt.limit_reached(self)
		if full ~= nil then
			return stop(self, target, full)
		end
		if not plans then
			local result_id, given_up = shoot(self, target, self.models[shooter], parents)
			if result_id ~= nil then
				return reached(target, result_id)
			elseif given_up ~= nil then
				return stop(self, target, given_up)
			end
		end
		plans = false
		local why = breakdown_limit(self, target)
		if why ~= nil then
			return stop(self, target, why)
		elseif undivided ~= nil then
			-- As often as it would be broken down, the other model shoots in place of that.
			rounds += 1
			shooter = 3 - shooter
			if rounds > self.params.max_breakdowns then
				return stop(self, target, `{rounds} shots did not reach it, and {undivided}`)
			end
			continue
		end
		local given = break_down(self, target, self.models[other], parents)
		if given ~= nil then
			local last, all = parts.work(self, target, given, false, reach_by(other))
			if all and last ~= nil and parts.validate(self, target, target.steps, last, "all sub-goals together") then
				return reached(target, last)
			end
		end
	end
end

return goal
