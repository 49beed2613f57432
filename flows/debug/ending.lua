--!strict
--- The end of a session: scores it, saves it, and shows a quote, the score card, a question to reflect on, and the profile.

local app = require("./app")
local clock = require("@nietz/clock")
local commands = require("./commands")
local json = require("@nietz/json")
local profile = require("./profile")
local quotes = require("@nietz/quotes")
local quoting = require("./quoting")
local session = require("./session")
local shape = require("../common/shape")
local show = require("./show")
local stack_trace = require("./stack_trace")
local text = require("@nietz/text")
local ui = require("@nietz/ui")
local vocabulary = require("./vocabulary")

local ending = {}

--- A session solved with at most so many questions may not have needed them.
local FEW_QUESTIONS = 2
--- The part of the context window that the transcript may take when it is scored.
local WINDOW_SHARE = 0.6

local function score_schema(): shape.Shape
	local properties, required = {}, {}
	for _, dimension in vocabulary.DIMENSIONS do
		properties[dimension.name] = shape.integer(1, 10)
		table.insert(required, dimension.name)
	end
	return shape.object(required, properties)
end

--- Has a model score the whole transcript; where that fails, the scores by tags stay.
local function score_session(self: app.App)
	local doc = self.doc
	if doc.nietz.state == "unscored" then
		return
	end
	local first = 1
	local turns: { session.Turn } = json.array({})
	for _, turn in doc.transcript do
		local shown = table.clone(turn)
		shown.response = stack_trace.shorten(turn.response)
		table.insert(turns, shown)
	end
	while #turns > 1 and #json.encode(turns) / 4 > self.context_tokens * WINDOW_SHARE do
		table.remove(turns, first)
	end
	local ok, value = pcall(app.ask_model, {
		prompt = "score",
		model = self.params.score_model,
		vars = {
			problem = stack_trace.shorten(doc.problemDescription),
			outcome = doc.outcome,
			turns = #doc.transcript,
			summary = if #turns < #doc.transcript then self.summary or false else false,
			transcript = turns,
		},
		schema = score_schema(),
		label = self.t("doing.scoring"),
		max_tokens = 200,
	})
	if ok and value ~= nil then
		doc.skillScores, doc.nietz.scoredBy = value, "model"
	end
end

--- Asks what was learnt, and keeps the answer.
local function ask_reflection(self: app.App)
	local prompt = self.t(if self.doc.outcome == "solved" then "reflect.solved" else "reflect.abandoned")
	local said = ui.ask({ id = "reflection", prompt = prompt, optional = true, commands = commands.skipping(self.t) })
	local line = text.trim(said)
	if line ~= "" then
		self.doc.nietz.reflection = { question = prompt, answer = line }
	end
end

local function show_quote(self: app.App)
	local quote = quoting.pick(if self.doc.outcome == "solved" then "victory" else "perseverance", self.lang, self.already_used)
	if quote ~= nil then
		ui.say(quotes.render(quote))
	end
end

--- Ends the session, and returns the run's result.
function ending.finish(self: app.App, outcome: "solved" | "abandoned"): any
	local doc = self.doc
	doc.outcome, doc.nietz.state = outcome, if self.answered > 0 then "ended" else "unscored"
	doc.endTimestamp = clock.now()
	app.save(self)
	score_session(self)
	app.save(self)
	show_quote(self)
	ui.say(show.card(self))
	if outcome == "solved" and #doc.transcript <= FEW_QUESTIONS and doc.nietz.state ~= "unscored" then
		ui.say(self.t("nudge"))
	end
	ask_reflection(self)
	local path = app.save(self)
	local whole = profile.compute({})
	ui.say(show.profile(self.lang, self.t, whole, true))
	ui.say(self.t("saved", { path = path }))
	return {
		id = doc.id,
		session = path,
		outcome = outcome,
		questionsToRootCause = doc.questionsToRootCause,
		skillScores = doc.skillScores,
		scoredBy = doc.nietz.scoredBy,
	}
end

return ending
