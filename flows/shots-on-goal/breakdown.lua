--!strict
--- An attempt that breaks a goal down into smaller ones, with tools that only read.

local open_attempt = require("./open_attempt")
local programs = require("../common/programs")
local record = require("./record")
local state = require("./state")
local template = require("@nietz/template")

local breakdown = {}

local SUB_GOALS = {
	type = "object",
	required = { "sub_goals" },
	properties = {
		sub_goals = {
			type = "array",
			minItems = 3,
			maxItems = 5,
			items = {
				type = "object",
				required = { "goal", "validation" },
				properties = {
					goal = { type = "string", minLength = 10 },
					validation = { type = "array", maxItems = 5, items = { type = "string", minLength = 1 } },
				},
			},
		},
	},
}

--- Has a model break a goal down, with tools that only read. The outcome's value is the list of sub-goals, or nil.
function breakdown.run(self: state.Session, goal: state.Goal, model: string): open_attempt.Outcome
	local prompt = template.render("./prompts/breakdown.md", {
		goal = goal.text,
		layout = self.repo_listing,
		steps = open_attempt.commands_of(goal),
		history = goal.history,
		commands = programs.describe_allowed(self.params) or "",
		max_tools = self.params.max_tools,
	})
	local begun = open_attempt.begin(self, goal, model, "breakdown", prompt)
	local needs_validation = programs.describe_allowed(self.params) ~= nil
	local status, detail, reply = open_attempt.run_model(self, begun, {
		schema = SUB_GOALS,
		check = function(value: { sub_goals: { open_attempt.SubGoal } }): string?
			for index, sub in value.sub_goals do
				if needs_validation and #sub.validation == 0 then
					return `sub-goal {index} has no validation`
				end
				for _, command in sub.validation do
					local _, why = programs.resolve(self.params, command)
					if why ~= nil then
						return `sub-goal {index}: {why}`
					end
				end
			end
			return nil
		end,
	})
	local value = if reply then reply.value else nil
	if value ~= nil then
		status, detail = "success", `{#value.sub_goals} sub-goals`
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
