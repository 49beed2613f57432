--!strict
--- An attempt that breaks a goal down into parts, with tools that only read.

local nietz = require("@nietz")
local open_attempt = require("./open_attempt")
local programs = require("../common/programs")
local record = require("./record")
local state = require("./state")
local template = require("@nietz/template")
local whereabouts = require("./whereabouts")

local breakdown = {}

--- The most parts of one breakdown.
local MAX_PARTS = 20

local SUB_GOALS = {
	type = "object",
	required = { "sub_goals" },
	properties = {
		sub_goals = {
			type = "array",
			minItems = 1,
			maxItems = MAX_PARTS,
			items = {
				type = "object",
				required = { "goal", "validation" },
				properties = {
					goal = { type = "string", minLength = 10 },
					after = { type = "array", maxItems = MAX_PARTS, items = { type = "integer", minimum = 1 } },
					validation = { type = "array", maxItems = 5, items = { type = "string", minLength = 1 } },
				},
			},
		},
	},
}

--- Returns why no part could ever be validated, or nil: where models may run nothing but what validates the whole goal, no part
--- can have a command of its own.
function breakdown.impossible(params: nietz.Values): string?
	if params.shell or #params.run > 0 or params.accept_unvalidated then
		return nil
	end
	local only = programs.describe_allowed(params)
	return "parts of the goal cannot be validated: no command of their own can be run for them"
		.. (if only then `, but only {only}` else "")
		.. ". `--run PROGRAM` allows such commands, as `--run grep` does"
end

--- Returns what is wrong with the parts that a model gives, or nil.
local function check(params: nietz.Values, subs: { open_attempt.SubGoal }): string?
	local needs_validation = programs.describe_allowed(params) ~= nil
	for index, sub in subs do
		if needs_validation and #sub.validation == 0 then
			return `sub-goal {index} has no validation`
		end
		for _, command in sub.validation do
			local _, why = programs.resolve(params, command)
			if why ~= nil then
				return `sub-goal {index}: {why}`
			end
		end
		for _, before in sub.after or {} :: { number } do
			if before >= index then
				return `sub-goal {index} comes after {before}: list them so that each comes behind those that it needs`
			end
		end
	end
	return nil
end

--- Has a model break a goal down, with tools that only read. The outcome's value is the list of sub-goals, or nil.
function breakdown.run(self: state.Session, goal: state.Goal, model: string, parents: { state.Goal }): open_attempt.Outcome
	local place = whereabouts.of(goal, parents)
	local prompt = template.render("./prompts/breakdown.md", {
		goal = goal.text,
		layout = place.layout,
		parents = place.parents,
		parts = place.parts,
		steps = open_attempt.commands_of(goal),
		history = goal.history,
		commands = programs.describe_allowed(self.params) or "",
		shell = self.params.shell,
		max_parts = MAX_PARTS,
		parallel = self.params.parallel,
		max_tools = self.params.max_tools,
	})
	local begun = open_attempt.begin(self, goal, model, "breakdown", prompt)
	local status, detail, reply = open_attempt.run_model(self, begun, {
		schema = SUB_GOALS,
		check = function(value: { sub_goals: { open_attempt.SubGoal } }): string?
			return check(self.params, value.sub_goals)
		end,
	})
	local value = if reply then reply.value else nil
	if value ~= nil then
		local count = #value.sub_goals
		status, detail = "success", `{count} sub-goal{if count == 1 then "" else "s"}`
	end
	local result_id = open_attempt.record_result(self, begun, begun.place.start, status, detail)
	record.add(self.record, "breakdown_response", {
		attempt_result_id = result_id,
		response = if reply then reply.text else detail,
	})
	local outcome = open_attempt.close(self, begun, result_id, status, detail, begun.place.start)
	outcome.value = if value then value.sub_goals else nil
	return outcome
end

return breakdown
