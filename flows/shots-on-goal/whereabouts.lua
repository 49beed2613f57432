--!strict
--- What a prompt says of where a goal stands: the files as they are now, the larger goals that it is a part of, and the other
--- parts. Apart, because shots and breakdowns are told the same.

local git = require("@nietz/git")
local list = require("../common/list")
local repo_listing = require("../common/repo_listing")
local state = require("./state")
local text = require("@nietz/text")

local whereabouts = {}

--- How many parts are listed one by one; of more, how many stand where.
local MAX_LISTED = 20
--- The longest text of a part in that list.
local MAX_TEXT = 300

export type Whereabouts = {
	--- The files on the goal's branch, as `repo_listing` has them.
	layout: string,
	--- The larger goals, the largest first.
	parents: { string },
	--- The other parts of the same goal and this one, a line each.
	parts: { string },
}

--- How a stage is told to models.
local STAGES = {
	["to come"] = "to come",
	["in work"] = "in work beside yours",
	reached = "reached beside yours, and not in the files yet",
	merged = "merged",
	failed = "failed; none of its work is in the files",
	["not begun"] = "not begun",
} :: { [string]: string }

--- Returns the parts that a goal is one of: of the same breakdown, and what was merged of those before it.
local function siblings(goal: state.Goal, parents: { state.Goal }): { state.Goal }
	local parent = parents[#parents]
	if parent == nil then
		return {}
	end
	return list.filter(parent.children, function(part)
		return part.made_by == goal.made_by or part.stage == "merged"
	end)
end

local function part_lines(goal: state.Goal, parents: { state.Goal }): { string }
	local found = siblings(goal, parents)
	if #found <= 1 then
		return {}
	elseif #found <= MAX_LISTED then
		return list.map(found, function(part): string
			local where = if part == goal then "yours" else STAGES[part.stage]
			return `{part.order}. ({where}) {text.truncate(part.text, MAX_TEXT)}`
		end)
	end
	local counts: { [string]: number } = {}
	for _, part in found do
		counts[part.stage] = (counts[part.stage] or 0) + (if part == goal then 0 else 1)
	end
	local lines = { `{goal.order}. (yours) {text.truncate(goal.text, MAX_TEXT)}` }
	for _, stage in { "merged", "reached", "in work", "to come", "failed", "not begun" } do
		if (counts[stage] or 0) > 0 then
			table.insert(lines, `{counts[stage]} others: {STAGES[stage]}`)
		end
	end
	return lines
end

--- Returns where a goal stands now.
function whereabouts.of(goal: state.Goal, parents: { state.Goal }): Whereabouts
	return {
		layout = repo_listing.render(git.commit_of(goal.branch) :: string),
		parents = list.map(parents, function(parent): string
			return parent.text
		end),
		parts = part_lines(goal, parents),
	}
end

return whereabouts
