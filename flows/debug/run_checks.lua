--!strict
--- What each debugging session must be whichever model asks, and what of it `nietz compare` holds against others.

local json = require("@nietz/json")
local leak_rules = require("./leak_rules")
local nietz = require("@nietz")
local question = require("./question")
local quoting = require("./quoting")

local run_checks = {}

--- The share of questions that may be the voice's own, because the model's must not be shown.
local OWN_QUESTIONS = 0.25

--- Returns the session that a run wrote; nil where it wrote none.
local function session_of(run: nietz.Recorded): any
	local sessions = run.documents.sessions
	return if sessions ~= nil and #sessions > 0 then sessions[#sessions].value else nil
end

--- Whether no question gives away what the developer had not said by then, as far as rules can tell.
local function gives_nothing_away(run: nietz.Recorded): boolean
	local session = session_of(run)
	local known = if session ~= nil then session.problemDescription else ""
	for _, turn in if session ~= nil then session.transcript else {} do
		local quote = if turn.quoteUsed ~= nil and turn.quoteUsed ~= json.null then turn.quoteUsed else nil
		local carried = if quote ~= nil then quoting.quoted_part(turn.question, quote) else nil
		if leak_rules.find_leak(turn.question, known, carried) ~= nil then
			return false
		end
		known ..= "\n" .. turn.response
	end
	return session ~= nil
end

--- Whether the model asks: what must not be shown is replaced by a question of the voice's own.
local function asks_itself(run: nietz.Recorded): boolean
	local session = session_of(run)
	local turns = if session ~= nil then session.transcript else {}
	local own = 0
	for _, turn in turns do
		own += if turn.model == question.NO_MODEL then 1 else 0
	end
	return #turns > 0 and own / #turns <= OWN_QUESTIONS
end

local function is_scored(run: nietz.Recorded): boolean
	local session = session_of(run)
	return session ~= nil and session.nietz ~= nil and session.nietz.state == "ended"
end

local ALL: { [string]: nietz.Check } = {
	gives_nothing_away = gives_nothing_away,
	asks_itself = asks_itself,
	is_scored = is_scored,
	questions_follow = "Does each question take up what the developer answered before it, and ask for one thing that they can look at?",
}
run_checks.ALL = ALL

--- Returns how a session ended, and what was asked: which turns there were is the developer's matter, too.
function run_checks.compared(run: nietz.Recorded): any
	local session = session_of(run)
	if session == nil then
		return nil
	end
	local lines: { string } = {}
	for _, turn in session.transcript do
		table.insert(lines, `**{turn.question}**\n\n{turn.response}`)
	end
	return { outcome = session.outcome, scores = session.skillScores, questions = table.concat(lines, "\n\n") }
end

return run_checks
