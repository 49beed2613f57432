--!strict
--- The end of a session: scores it, saves it, and shows a quote, the score card, a question to reflect on, and the profile.

local app = require("./app")
local clock = require("@nietz/clock")
local commands = require("./commands")
local entries = require("../common/memory/entries")
local llm = require("@nietz/llm")
local profile = require("./profile")
local quotes = require("@nietz/quotes")
local quoting = require("./quoting")
local scoring = require("./scoring")
local show = require("./show")
local text = require("@nietz/text")
local ui = require("@nietz/ui")

local ending = {}

--- A session solved with at most so many questions may not have needed them.
local FEW_QUESTIONS = 2
--- Asks what was learnt, and keeps the answer.
local function ask_reflection(self: app.App)
	local prompt = self.t(if self.doc.outcome == "solved" then "reflect.solved" else "reflect.abandoned")
	local said = ui.ask({ id = "reflection", prompt = prompt, optional = true, commands = commands.skipping(self.t, self.lang) })
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

--- Puts a solved session into the debug memory, with the cause as the developer told it last.
local function remember(self: app.App)
	local doc = self.doc
	-- What stands behind `solved`, else the answer before it: `solved` alone stands in the transcript, too.
	local turns = doc.transcript
	local last, before = turns[#turns], turns[#turns - 1]
	local cause = text.trim(if last then last.response else "")
	if #cause < entries.SHORTEST and before ~= nil then
		cause = text.trim(before.response)
	end
	if self.params.memory then
		entries.remember_solved({ id = doc.id, run = self.run, model = llm.model(), problem = doc.problemDescription, cause = cause })
	end
end

--- Ends the session, and returns the run's result.
function ending.finish(self: app.App, outcome: "solved" | "abandoned"): any
	local doc = self.doc
	doc.outcome, doc.nietz.state = outcome, if self.answered > 0 then "ended" else "unscored"
	doc.endTimestamp = clock.now()
	app.save(self)
	scoring.score(self)
	app.save(self)
	show_quote(self)
	ui.say(show.card(self))
	if outcome == "solved" and #doc.transcript <= FEW_QUESTIONS and doc.nietz.state ~= "unscored" then
		ui.say(self.t("nudge"))
	end
	ask_reflection(self)
	local path = app.save(self)
	if outcome == "solved" then
		remember(self)
	end
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
