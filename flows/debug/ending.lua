--!strict
--- How a session ends: scored, saved, with its score card, a last word, and a question to take home.

local app = require("./app")
local clock = require("@nietz/clock")
local json = require("@nietz/json")
local profile = require("./profile")
local quotes = require("@nietz/quotes")
local quoting = require("./quoting")
local session = require("./session")
local shape = require("../common/shape")
local show = require("./show")
local text = require("@nietz/text")
local trace = require("./trace")
local ui = require("@nietz/ui")
local vocabulary = require("./vocabulary")

local ending = {}

--- Solved with so few questions, one might have done without them.
local FEW = 2
--- How much of the window the transcript may take when it is scored.
local SHARE = 0.6

local function schema(): shape.Shape
	local properties, required = {}, {}
	for _, dimension in vocabulary.DIMENSIONS do
		properties[dimension.name] = shape.integer(1, 10)
		table.insert(required, dimension.name)
	end
	return shape.object(required, properties)
end

--- Scores by a model that reads the whole transcript; where it gives nothing valid, the tags' scores stay.
local function score(self: app.App)
	local doc = self.doc
	if #doc.transcript == 0 or doc.transcript[1].response == "" then
		return
	end
	local first = 1
	local turns: { session.Turn } = json.array({})
	for _, turn in doc.transcript do
		local shown = table.clone(turn)
		shown.response = trace.reduce(turn.response)
		table.insert(turns, shown)
	end
	while #turns > 1 and #json.encode(turns) / 4 > self.window * SHARE do
		table.remove(turns, first)
	end
	local ok, value = pcall(app.think, {
		prompt = "score",
		vars = {
			problem = trace.reduce(doc.problemDescription),
			outcome = doc.outcome,
			turns = #doc.transcript,
			summary = if #turns < #doc.transcript then self.summary or false else false,
			transcript = turns,
		},
		schema = schema(),
		label = self.t("doing.scoring"),
		max_tokens = 200,
	})
	if ok and value ~= nil then
		doc.skillScores, doc.scoredBy = value, "model"
	end
end

--- Asks what was learnt, and keeps the answer.
local function reflect(self: app.App)
	local prompt = self.t(if self.doc.outcome == "solved" then "reflect.solved" else "reflect.abandoned")
	local line = text.trim(ui.ask({ id = "reflection", prompt = prompt, optional = true }))
	if line ~= "" then
		self.doc.reflection = { question = prompt, answer = line }
	end
end

local function last_word(self: app.App)
	local quote = quoting.pick(if self.doc.outcome == "solved" then "victory" else "perseverance", self.lang, self.given)
	if quote ~= nil then
		ui.say(quotes.render(quote))
	end
end

--- Ends the session: scores it, saves it and shows what came of it. Returns the run's result.
function ending.finish(self: app.App, outcome: "solved" | "abandoned"): any
	local doc = self.doc
	doc.outcome = outcome
	doc.endTimestamp = clock.now()
	app.save(self)
	score(self)
	app.save(self)
	last_word(self)
	ui.say(show.card(self))
	if outcome == "solved" and #doc.transcript <= FEW then
		ui.say(self.t("nudge"))
	end
	reflect(self)
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
		scoredBy = doc.scoredBy,
	}
end

return ending
