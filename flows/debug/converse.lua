--!strict
--- The conversation: a question, a response, the tags of the response, the next question, until the developer says that it is
--- solved or gives up. What a line that is no answer does stands in `HANDLERS`.

local app = require("./app")
local clock = require("@nietz/clock")
local code = require("./code")
local commands = require("./commands")
local fix_check = require("./fix_check")
local intensity = require("./intensity")
local intent = require("./intent")
local question = require("./question")
local recap = require("./recap")
local session = require("./session")
local session_commands = require("./session_commands")
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
	--- Whether it says anything: a command alone does not.
	explained: boolean,
}
export type Outcome = "solved" | "abandoned"

--- What follows from a line: the next question, an earlier turn that is open again, or the session's end; where none of them is
--- there, the question stays open.
export type Step = { asked: question.NextQuestion?, reopened: session.Turn?, outcome: Outcome? }

--- Returns what was typed at the open question. An empty line is nothing, and the host asks on.
local function listen(self: app.App): Said
	local said, command, line = ui.ask({
		id = "answer",
		prompt = self.t("answer"),
		complete = { "solved", "exit", "I give up" },
		commands = commands.of_turn(self.t),
		recap = recap.render(self),
	})
	-- A command alone stands in the transcript as it was typed, one with an explanation as that.
	return { text = text.trim(if said == "" and line ~= nil then line else said), command = command, explained = said ~= "" }
end

--- Asks a question, and returns its turn.
local function ask_question(self: app.App, asked: question.NextQuestion): session.Turn
	local turn = session.add_turn(self.doc, asked.text, asked.model, asked.quote, clock.now())
	-- Saved without a response, so that a session which is left here shows the open question.
	app.save(self)
	session_commands.show_question(self, turn)
	return turn
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

--- Ends the session as solved, unless what they saw is not all explained, or their own command says otherwise.
local function take_solved(self: app.App, turn: session.Turn, said: Said): Step
	turn.response = said.text
	self.answered += if said.explained then 1 else 0
	if not session_commands.explains_all(self) then
		return { asked = question.next(self, turn.response, { unexplained = true }) }
	end
	local ran = if self.params.verify then fix_check.run(self) else nil
	if ran == nil or ran.holds or ui.confirm({ id = "still-solved", prompt = self.t("verify.still"), default = false }) then
		return { outcome = "solved" }
	end
	return { asked = question.next(self, turn.response, { failed_check = { exit = ran.exit, output = ran.output } }) }
end

--- By the command that a line is: what it does. A line that is none is an `answer`.
local HANDLERS: { [string]: (self: app.App, turn: session.Turn, said: Said) -> Step } = {
	answer = function(self, turn, said)
		if session_commands.is_meant_as_solved(self, said.text) then
			return take_solved(self, turn, said)
		end
		turn.response = said.text
		self.answered += 1
		return { asked = take_response(self, turn, code.read_named(self, said.text)) }
	end,
	exit = function(_self, _turn, _said)
		return { outcome = "abandoned" }
	end,
	["give-up"] = function(self, turn, said)
		turn.response = said.text
		if self.doc.nietz.lifelineUsed then
			return { outcome = "abandoned" }
		end
		self.doc.nietz.lifelineUsed = true
		ui.say(self.t("lifeline"))
		return { asked = question.next(self, turn.response, { lifeline = true }) }
	end,
	solved = take_solved,
	hint = function(self, turn, _said)
		session_commands.narrow(self, turn)
		return {}
	end,
	recap = function(self, _turn, _said)
		ui.say(recap.render(self))
		return {}
	end,
	undo = function(self, _turn, _said)
		return { reopened = session_commands.take_back(self) }
	end,
}

--- What `/undo` takes back.
local UNDONE = { answer = true, ["give-up"] = true, solved = true } :: { [string]: boolean }

--- Leads the conversation to its end, and returns the outcome.
function converse.run(self: app.App): Outcome
	local missing = code.read_named(self, self.doc.problemDescription)
	local asked: question.NextQuestion = question.next(self, nil, { opening = true, missing_files = missing })
	while true do
		local turn = ask_question(self, asked)
		local step: Step
		repeat
			local said = listen(self)
			local command = said.command or "answer"
			if UNDONE[command] then
				session_commands.remember(self)
			end
			step = HANDLERS[command](self, turn, said)
			turn = step.reopened or turn
		until step.asked ~= nil or step.outcome ~= nil
		if step.outcome ~= nil then
			return step.outcome
		end
		asked = step.asked :: question.NextQuestion
	end
end

return converse
