--!strict
--- The conversation: a question, a response, the tags of the response, the next question, until the developer says that it is
--- solved or gives up.

local app = require("./app")
local clock = require("@nietz/clock")
local code = require("./code")
local commands = require("./commands")
local fix_check = require("./fix_check")
local intensity = require("./intensity")
local intent = require("./intent")
local question = require("./question")
local session = require("./session")
local tags = require("./tags")
local task = require("@nietz/task")
local text = require("@nietz/text")
local ui = require("@nietz/ui")

local converse = {}

export type Said = {
	--- What was said, as the transcript has it.
	text: string,
	--- The command that it is, if it is one.
	command: string?,
}

--- Returns the first line that is not empty: an empty one is no answer.
local function listen(self: app.App): Said
	local offered = commands.endings(self.t)
	while true do
		local said, command, line = ui.ask({
			id = "answer",
			prompt = self.t("answer"),
			optional = true,
			complete = { "solved", "exit", "I give up" },
			commands = offered,
		})
		-- A command alone stands in the transcript as it was typed, one with an explanation as that.
		local heard = text.trim(if said == "" and line ~= nil then line else said)
		if heard ~= "" then
			return { text = heard, command = command }
		end
	end
end

--- Asks a question, and returns its turn and what was said.
local function ask_question(self: app.App, asked: question.NextQuestion): (session.Turn, Said)
	local turn = session.add_turn(self.doc, asked.text, asked.model, asked.quote, clock.now())
	-- Saved without a response, so that a session which is left here shows the open question.
	app.save(self)
	ui.say(`**[{self.t("turn")} {turn.turnNumber}]** {asked.text}`, { from = app.voice(self).name })
	return turn, listen(self)
end

--- Raises the failure of a branch; where both failed, always that of the same one, so that a replay fails alike.
local function raise_first(settled: any)
	for _, name in { "tags", "question" } do
		local branch = settled[name]
		if not branch.ok then
			error(branch.error, 0)
		end
	end
end

--- Records and tags a response, and returns the next question.
local function take_response(self: app.App, turn: session.Turn, missing: { string }): question.NextQuestion
	local asked = intent.asks_for_answer(turn.response)
	if asked then
		session.add_tags(self.doc, turn, { "asked-for-answer" })
		intensity.raise(self)
	end
	-- The response is saved before any model call costs something.
	app.save(self)
	local settled = task.settle({
		tags = function(): any
			return tags.ask_tags(self, turn) or false
		end,
		question = function(): any
			return question.next(self, turn.response, { asked_for_answer = asked, missing_files = missing })
		end,
	})
	raise_first(settled)
	local found, next_question = settled.tags.value :: any, settled.question.value :: any
	if not found then
		ui.say(self.t("tags.none"))
		return next_question
	end
	session.add_tags(self.doc, turn, found)
	if tags.escalates(found) and not asked and intensity.raise(self) then
		-- The model saw a plea for the answer that the word lists did not: asked again in the harder voice.
		return question.next(self, turn.response, { asked_for_answer = true, missing_files = missing })
	end
	return next_question
end

--- Leads the conversation to its end, and returns the outcome. `run` is the run's id.
function converse.run(self: app.App, run: string): "solved" | "abandoned"
	local missing = code.read_named(self, self.doc.problemDescription)
	local asked = question.next(self, nil, { opening = true, missing_files = missing })
	while true do
		local turn, said = ask_question(self, asked)
		if said.command == "exit" then
			return "abandoned"
		end
		turn.response = said.text
		if said.command == "solved" then
			local ran = if self.params.verify then fix_check.run(self, run) else nil
			if ran == nil or ran.holds or ui.confirm({ id = "still-solved", prompt = self.t("verify.still"), default = false }) then
				return "solved"
			end
			asked = question.next(self, turn.response, { failed_check = { exit = ran.exit, output = ran.output } })
		elseif said.command == "give-up" then
			if self.doc.lifelineUsed then
				return "abandoned"
			end
			self.doc.lifelineUsed = true
			ui.say(self.t("lifeline"))
			asked = question.next(self, turn.response, { lifeline = true })
		else
			asked = take_response(self, turn, code.read_named(self, said.text))
		end
	end
end

return converse
