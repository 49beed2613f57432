--!strict
--- What each council must be whichever models sit in it, and what of it `nietz compare` holds against others.

local agreement = require("./agreement")
local nietz = require("@nietz")

local run_checks = {}

--- Whoever is at least as sure of another option at the end, of 100, is a minority that must be heard.
local SURE = 20

--- Returns the decision of a council, and the session that it is of; nil where there is none.
local function decision_of(run: nietz.Recorded): (any, any)
	local session = run.result
	local metadata = if type(session) == "table" then session.metadata else nil
	return if metadata ~= nil then metadata.decision else nil, session
end

--- Whether everybody who stood elsewhere at the end has their say in the answer.
local function minority_is_heard(run: nietz.Recorded): boolean
	local decision, session = decision_of(run)
	if decision == nil then
		return false
	end
	local heard: { [string]: boolean } = {}
	for _, report in decision.minorityReports or {} do
		for _, from in report.from or {} do
			heard[from.name] = true
		end
	end
	local measures = session.metadata.measures or {}
	local last = measures[#measures]
	for _, position in if last ~= nil then last.positions else {} do
		local elsewhere = position.option ~= decision.option and position.option ~= agreement.UNDECIDED
		if elsewhere and position.confidence >= SURE and not heard[position.name] then
			return false
		end
	end
	return true
end

--- Whether the answer says what it costs and what it rests on.
local function has_tradeoffs(run: nietz.Recorded): boolean
	local decision = decision_of(run)
	return decision ~= nil and (#(decision.tradeoffs or {}) > 0 or #(decision.sections or {}) > 1)
end

local function is_written(run: nietz.Recorded): boolean
	local decision, session = decision_of(run)
	return decision ~= nil and not decision.composed and type(session.finalAnswer) == "string"
end

local ALL: { [string]: nietz.Check } = {
	minority_is_heard = minority_is_heard,
	has_tradeoffs = has_tradeoffs,
	is_written = is_written,
	answers_the_request = "Does the answer decide what was asked, so that whoever asked knows what to do next?",
}
run_checks.ALL = ALL

--- Returns the outcome, and the answer as it was given.
function run_checks.compared(run: nietz.Recorded): any
	local decision, session = decision_of(run)
	if decision == nil then
		return run.result
	end
	return {
		option = decision.option,
		outcome = session.metadata.outcome,
		minorities = #(decision.minorityReports or {}),
		answer = session.finalAnswer,
	}
end

return run_checks
