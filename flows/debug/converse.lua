--!strict
--- The exchange itself: a question, a response, what is seen in it, the next question, until the developer says that it
--- is solved or gives up.

local app = require("./app")
local clock = require("@nietz/clock")
local code = require("./code")
local intensity = require("./intensity")
local question = require("./question")
local session = require("./session")
local tags = require("./tags")
local task = require("@nietz/task")
local text = require("@nietz/text")
local ui = require("@nietz/ui")
local verify = require("./verify")
local words = require("./words")

local converse = {}

--- Asks until something is said: an empty line is no answer.
local function listen(self: app.App): string
	while true do
		local line =
			text.trim(ui.ask({ id = "answer", prompt = self.t("answer"), optional = true, complete = { "solved", "exit", "I give up" } }))
		if line ~= "" then
			return line
		end
	end
end

--- Puts a question, and returns its turn and what was typed.
local function put(self: app.App, asked: question.Asked): (session.Turn, string)
	local turn = session.ask(self.doc, asked.text, asked.model, asked.quote, clock.now())
	-- An open question is a turn without a response: whoever goes away here has left in the middle of it.
	app.save(self)
	ui.say(`**[{self.t("turn")} {turn.turnNumber}]** {asked.text}`, { from = app.voice(self).name })
	return turn, listen(self)
end

--- Raises the failure of a branch; the code says which of several.
local function raise_first(settled: any)
	for _, name in { "tags", "question" } do
		local branch = settled[name]
		if not branch.ok then
			error(branch.error, 0)
		end
	end
end

--- Takes a response in, and returns the next question.
local function answer(self: app.App, turn: session.Turn, missing: { string }): question.Asked
	local asked = words.asks_for_answer(turn.response)
	if asked then
		session.tag(self.doc, turn, { "asked-for-answer" })
		intensity.rise(self)
	end
	-- What was said is safe before anything is paid for.
	app.save(self)
	local settled = task.settle({
		tags = function(): any
			return tags.read(self, turn) or false
		end,
		question = function(): any
			return question.next(self, turn.response, { asked = asked, missing = missing })
		end,
	})
	raise_first(settled)
	local found, next_question = settled.tags.value :: any, settled.question.value :: any
	if not found then
		ui.say(self.t("tags.none"))
		return next_question
	end
	session.tag(self.doc, turn, found)
	if tags.escalate(found) and not asked and intensity.rise(self) then
		-- The model heard the plea that no word gave away: the question comes in the harder voice.
		return question.next(self, turn.response, { asked = true, missing = missing })
	end
	return next_question
end

--- Leads the exchange to its end, and returns the outcome. `run` is the run's id.
function converse.run(self: app.App, run: string): "solved" | "abandoned"
	local missing = code.take(self, self.doc.problemDescription)
	local asked = question.next(self, nil, { opening = true, missing = missing })
	while true do
		local turn, line = put(self, asked)
		local ending = words.ending(line)
		if ending == "exit" then
			return "abandoned"
		end
		turn.response = line
		if ending == "solved" then
			local ran = if self.params.verify then verify.run(self, run) else nil
			if ran == nil or ran.holds or ui.confirm({ id = "still-solved", prompt = self.t("verify.still"), default = false }) then
				return "solved"
			end
			asked = question.next(self, turn.response, { verified = { exit = ran.exit, output = ran.output } })
		elseif ending == "give up" then
			if self.doc.lifelineUsed then
				return "abandoned"
			end
			self.doc.lifelineUsed = true
			ui.say(self.t("lifeline"))
			asked = question.next(self, turn.response, { lifeline = true })
		else
			asked = answer(self, turn, code.take(self, line))
		end
	end
end

return converse
