--!strict
--- The conversation: a question, a response, what the response shows, the next question, until the developer says that it is
--- solved or gives up. What a line that is no answer does stands in `HANDLERS`.

local app = require("./app")
local clock = require("@nietz/clock")
local code = require("./code")
local commands = require("./commands")
local evidence = require("./evidence")
local fix_check = require("./fix_check")
local hints = require("./hints")
local imports = require("./imports")
local intensity = require("./intensity")
local intent = require("./intent")
local ledger = require("./ledger")
local question = require("./question")
local reading = require("./reading")
local recap = require("./recap")
local session = require("./session")
local session_commands = require("./session_commands")
local stack_trace = require("./stack_trace")
local task = require("@nietz/task")
local text = require("@nietz/text")
local ui = require("@nietz/ui")
local verifier = require("./verifier")

local converse = {}

--- The tag of a response that asks for the answer.
local PLEA = "asked-for-answer"

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
	local offered = commands.of_turn(self.t, self.lang)
	if evidence.can_run_again(self) then
		table.insert(offered, commands.again(self.t))
	end
	local said, command, line = ui.ask({
		id = "answer",
		prompt = self.t("answer"),
		complete = { "solved", "exit", "I give up" },
		commands = offered,
		recap = recap.render(self),
	})
	if command == nil then
		local other = commands.in_other_language(said)
		if other ~= nil then
			return { text = text.trim(said), command = other, explained = false }
		end
	end
	-- A command alone stands in the transcript as it was typed, one with an explanation as that.
	return { text = text.trim(if said == "" and line ~= nil then line else said), command = command, explained = said ~= "" }
end

--- Asks a question, and returns its turn.
local function ask_question(self: app.App, asked: question.NextQuestion): session.Turn
	local turn = session.add_turn(self.doc, asked.text, asked.model, asked.quote, clock.now())
	-- Saved without a response, so that a session which is left here shows the open question.
	app.save(self)
	session_commands.show_question(self, turn, asked.voice)
	return turn
end

--- Raises the failure of a branch; where both failed, always that of the same one, so that a replay fails alike.
local function raise_first(settled: any)
	for _, name in { "reading", "question" } do
		local branch = settled[name]
		if not branch.ok then
			error(branch.error, 0)
		end
	end
end

--- A plea for the answer that the words of a response are, and what there was before the intensity rose for it.
type Plea = { before: intensity.Before? }

--- Tags a response that asks for the answer by its words, and raises the intensity for it.
local function hear_plea(self: app.App, turn: session.Turn): Plea?
	if not intent.asks_for_answer(turn.response) then
		return nil
	end
	session.add_tags(self.doc, turn, { PLEA })
	return { before = intensity.raise(self) }
end

--- Takes a plea back that a capable model did not find in the response: words alone are taken wrongly at times.
local function withdraw(self: app.App, turn: session.Turn, plea: Plea)
	session.remove_tag(self.doc, turn, PLEA)
	if plea.before ~= nil then
		intensity.take_back(self, plea.before)
	end
end

--- Records what a model has read in a response: tags, ledger, whether it was progress, and a plea that its words did not show.
local function take_reading(self: app.App, turn: session.Turn, found: reading.Reading?, plea: Plea?)
	if found == nil then
		ui.say(self.t("tags.none"))
		return
	end
	local capable = verifier.is_available(true, nil)
	local pleads = reading.escalates(found.tags)
	session.add_tags(self.doc, turn, found.tags)
	if plea ~= nil and not pleads and capable then
		withdraw(self, turn, plea)
	end
	local asked = pleads or plea ~= nil and not capable
	if pleads and plea == nil then
		-- The question that is there already is shown as it is: the harder voice asks from the next one on.
		intensity.raise(self, true)
	end
	local progress = ledger.apply(self, found)
	if ledger.of(self) == nil then
		-- A model that gives no entries: its tags say whether there was progress, and a small one that gives none says nothing.
		progress = reading.is_good(found.tags)
		if not progress and not capable then
			return
		end
	end
	if not intent.asks_for_concept(turn.response) then
		hints.note(self, progress)
		intensity.note(self, progress and not asked)
	end
end

--- Records and reads a response, and returns the next question: both calls run beside each other, so a question knows the ledger
--- as it was before this response, and the response itself.
local function take_response(self: app.App, turn: session.Turn, notes: question.Notes): question.NextQuestion
	local plea = hear_plea(self, turn)
	notes.asked_for_answer = plea ~= nil
	hints.hear(self, turn.response)
	-- The response is saved before any model call costs something.
	app.save(self)
	-- Both are looked up before either call is over: what the question goes for must not depend on which comes first.
	if notes.failed_check == nil and not intent.asks_for_concept(turn.response) then
		notes.target, notes.hint = ledger.target(self, turn.response), hints.current(self, turn.response)
	end
	local settled = task.settle({
		reading = function(): any
			return reading.ask(self, turn) or false
		end,
		question = function(): any
			return question.next(self, turn.response, notes)
		end,
	})
	raise_first(settled)
	ledger.note_asked(self, notes.target)
	take_reading(self, turn, settled.reading.value or nil, plea)
	return settled.question.value :: any
end

--- Reads the last response of a session. Where no model can be reached, the session ends all the same.
local function read_last(self: app.App, turn: session.Turn)
	app.save(self)
	local ok, found = pcall(reading.ask, self, turn)
	if ok and found ~= nil then
		session.add_tags(self.doc, turn, found.tags)
		ledger.apply(self, found)
	else
		ui.say(self.t("tags.none"))
	end
end

--- Takes in the files that a text names and those that it attaches, and of a trace those that its files import. Returns the names
--- that were not found.
local function take_named(self: app.App, value: string): { string }
	local missing = evidence.take_attached(self, value)
	for _, name in code.read_named(self, value, true) do
		table.insert(missing, name)
	end
	if stack_trace.has_frames(value) then
		imports.read_behind(self, value)
	end
	return missing
end

--- Ends the session as solved, unless what they saw is not all explained, or their own command says otherwise.
local function take_solved(self: app.App, turn: session.Turn, said: Said): Step
	turn.response = said.text
	self.answered += if said.explained then 1 else 0
	if not session_commands.explains_all(self) then
		return { asked = take_response(self, turn, { unexplained = true }) }
	end
	local ran = if self.params.verify then fix_check.run(self) else nil
	if
		ran == nil
		or ran.holds
		or ui.confirm({ id = "still-solved", prompt = self.t("verify.still"), default = false, yes = self.t("yes"), no = self.t("no") })
	then
		read_last(self, turn)
		return { outcome = "solved" }
	end
	return { asked = take_response(self, turn, { failed_check = { exit = ran.exit, output = fix_check.tail(ran.output) } }) }
end

--- By the command that a line is: what it does. A line that is none is an `answer`.
local HANDLERS: { [string]: (self: app.App, turn: session.Turn, said: Said) -> Step } = {
	answer = function(self, turn, said)
		if session_commands.is_meant_as_solved(self, said.text) then
			return take_solved(self, turn, said)
		end
		turn.response = said.text
		self.answered += 1
		return { asked = take_response(self, turn, { missing_files = take_named(self, said.text) }) }
	end,
	again = function(self, _turn, _said)
		evidence.again(self)
		return {}
	end,
	attach = function(self, _turn, said)
		evidence.take_attached(self, `@{said.text}`)
		app.save(self)
		return {}
	end,
	exit = function(_self, _turn, _said)
		return { outcome = "abandoned" }
	end,
	["give-up"] = function(self, turn, said)
		turn.response = said.text
		if self.doc.nietz.lifelineUsed then
			read_last(self, turn)
			return { outcome = "abandoned" }
		end
		self.doc.nietz.lifelineUsed = true
		ui.say(self.t("lifeline"))
		return { asked = take_response(self, turn, { lifeline = true }) }
	end,
	solved = take_solved,
	hint = function(self, _turn, _said)
		hints.ask(self)
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
	local missing = take_named(self, self.doc.problemDescription)
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
