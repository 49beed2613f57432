--!strict
--- The scores of a session: a model reads the whole transcript and says of each dimension which turns show it and why. Where it
--- says nothing valid, the tags are counted. What each score rests on is kept (`nietz.scores`) and shown.

local app = require("./app")
local json = require("@nietz/json")
local leak_rules = require("./leak_rules")
local list = require("../common/list")
local reply_check = require("./reply_check")
local session = require("./session")
local shape = require("../common/shape")
local stack_trace = require("./stack_trace")
local text = require("@nietz/text")
local vocabulary = require("./vocabulary")

local scoring = {}

--- The part of the context window that the transcript may take when it is scored.
local WINDOW_SHARE = 0.6
--- The most turns that one score names.
local MOST_TURNS = 6

local function score_schema(): shape.Shape
	local properties, required = {}, {}
	for _, dimension in vocabulary.DIMENSIONS do
		properties[dimension.name] = shape.object({ "turns", "reason", "score" }, {
			turns = shape.list({ type = "integer", minimum = 1 }, nil, MOST_TURNS),
			reason = shape.text(1),
			score = shape.integer(1, 10),
		})
		table.insert(required, dimension.name)
	end
	return shape.object(required, properties)
end

--- Returns the turns as the prompt shows them, the last ones where all of them do not fit.
local function shown_turns(self: app.App): { session.Turn }
	local turns: { session.Turn } = json.array({})
	for _, turn in self.doc.transcript do
		local shown = table.clone(turn)
		shown.response = stack_trace.shorten(turn.response)
		table.insert(turns, shown)
	end
	while #turns > 1 and #json.encode(turns) / 4 > self.context_tokens * WINDOW_SHARE do
		table.remove(turns, 1)
	end
	return turns
end

--- Returns the turns that there are among these, each once, in order.
local function real_turns(self: app.App, named: { number }): { number }
	local found: { number } = json.array({})
	for number in self.doc.transcript do
		if table.find(named, number) ~= nil then
			table.insert(found, number)
		end
	end
	return found
end

--- Returns a reason as it may be shown. Where the cause was not found, a reason that gives it away is left out: the session may be
--- taken up in another one.
local function shown_reason(self: app.App, reason: string): string
	if self.doc.outcome == "solved" then
		return reason
	end
	-- The rules judge questions: what stands before this one is what they look at.
	local leak = leak_rules.find_leak(`{reason} {self.t("card.asked")}`, reply_check.known_text(self), nil)
	return if leak == nil then reason else ""
end

--- Has a model score the whole transcript; where that fails, the scores by tags stay.
function scoring.score(self: app.App)
	local doc = self.doc
	if doc.nietz.state == "unscored" then
		return
	end
	local turns = shown_turns(self)
	local ok, value = pcall(app.ask_model, {
		prompt = "score",
		model = self.params.score_model,
		vars = {
			problem = stack_trace.shorten(doc.problemDescription),
			outcome = doc.outcome,
			turns = #doc.transcript,
			summary = if #turns < #doc.transcript then self.summary or false else false,
			transcript = turns,
			language = self.t("language"),
		},
		schema = score_schema(),
		label = self.t("doing.scoring"),
	})
	if not ok or value == nil then
		return
	end
	doc.nietz.scoredBy, doc.nietz.scores = "model", {}
	for _, dimension in vocabulary.DIMENSIONS do
		local given = value[dimension.name]
		doc.skillScores[dimension.name] = given.score
		doc.nietz.scores[dimension.name] = { turns = real_turns(self, given.turns), reason = shown_reason(self, given.reason) }
	end
end

local function name_turns(self: app.App, turns: { number }): string
	if #turns == 0 then
		return self.t("card.no_turn")
	end
	local numbers = table.concat(list.map(turns, tostring), ", ")
	return self.t(if #turns == 1 then "card.turn" else "card.turns", { turns = numbers })
end

--- Returns what the scores rest on, a line for each: the model's reason with its turns, and the tags with theirs.
function scoring.explain(self: app.App): { string }
	local lines: { string } = {}
	for _, dimension in vocabulary.DIMENSIONS do
		local given = if self.doc.nietz.scores then self.doc.nietz.scores[dimension.name] else nil
		if given ~= nil then
			local label = dimension.label[self.lang] or dimension.label.en or dimension.name
			table.insert(lines, text.trim(`- {label}: {given.reason}`) .. ` ({name_turns(self, given.turns)})`)
		end
	end
	local tagged: { string } = {}
	for _, tag in vocabulary.TAGS do
		local turns: { number } = {}
		for _, seen in self.doc.behaviorTags do
			if seen.tag == tag.tag then
				table.insert(turns, seen.turnNumber)
			end
		end
		if #turns > 0 then
			local label: { [string]: string } = tag.label or {}
			table.insert(tagged, `{label[self.lang] or label.en or tag.tag} ({name_turns(self, turns)})`)
		end
	end
	if #tagged > 0 then
		table.insert(lines, `- {self.t("card.seen")} {table.concat(tagged, "; ")}`)
	end
	return lines
end

return scoring
