--!strict
--- One iteration: questions, answers, score, save. It begins at whatever point the session has reached: a new one, one that was
--- stopped between two answers, or one that went back.

local app = require("./app")
local clock = require("@nietz/clock")
local dialogue = require("./dialogue")
local json = require("@nietz/json")
local list = require("../common/list")
local path = require("./path")
local questions = require("./questions")
local scoring = require("./scoring")
local session = require("./session")
local similarity = require("../common/similarity")
local text = require("@nietz/text")
local translations = require("../common/translations")
local ui = require("@nietz/ui")

local iterate = {}

--- Returns a question with its priority and suggestions. The history keeps texts alone, as specified; the rest stands in
--- `nietz.offered`.
local function offered_question(self: app.App, question: string): questions.Question
	local offered: { session.Offer } = self.doc.nietz.offered or {}
	for _, offer in offered do
		if offer.question == question then
			return { question = question, priority = offer.priority or "important", suggestions = offer.suggestions or {} }
		end
	end
	return { question = question, priority = "important", suggestions = {} }
end

local function suggestion_options(question: questions.Question): { dialogue.Option }
	return list.map(question.suggestions, function(suggestion): dialogue.Option
		return { value = suggestion, label = suggestion }
	end)
end

--- Returns one question with its suggestions as Markdown. The prompt holds all of it, because an editor, a script or a resumed
--- run shows nothing else.
local function render_question(self: app.App, question: questions.Question, index: number, count: number, earlier: string?): string
	local lines: { string } = {}
	local priority = self.t(`priorities.{question.priority}`)
	table.insert(lines, if count > 1 then `{priority} · {self.t("ask.number", { index = index, count = count })}` else priority)
	table.insert(lines, "")
	table.insert(lines, `**{question.question}**`)
	table.insert(lines, "")
	for number, suggestion in question.suggestions do
		table.insert(lines, `- **{dialogue.letter(number)}** {suggestion}`)
	end
	if #question.suggestions == 0 then
		table.remove(lines)
	end
	if earlier ~= nil and earlier ~= "" then
		table.insert(lines, "")
		table.insert(lines, self.t("ask.earlier", { answer = earlier }))
	end
	table.insert(lines, "")
	table.insert(lines, self.t("ask.prompt"))
	return table.concat(lines, "\n")
end

--- The answer that takes the first suggestion of this question and of all that follow in the iteration.
local ALL = "ok"

--- Asks one question. Returns the answer, empty when it was skipped, or nil and where a command leads.
local function ask_question(
	self: app.App,
	question: questions.Question,
	index: number,
	count: number,
	earlier: string?
): (string?, app.Signal?)
	local first = question.suggestions[1]
	local default = if earlier ~= nil and earlier ~= "" then earlier elseif self.options.turbo then first else nil
	session.put_question(self.doc, question.question)
	return dialogue.ask(self, {
		id = "answer",
		prompt = render_question(self, question, index, count, earlier),
		options = suggestion_options(question),
		several = true,
		default = default,
	})
end

local function begin_questions(self: app.App, again: boolean)
	-- A small mind is a slow one, too: its first question comes alone, and so at once.
	local limit = self.options.questions
	local answered = if again then #session.open_iteration(self.doc).responses else 0
	local found = questions.next(self, math.max(1, limit - answered), not again)
	local wanted: { string } = {}
	for _, question in found do
		table.insert(wanted, question.question)
	end
	local now = clock.now()
	if again then
		session.replace_open_questions(self.doc, wanted)
	else
		session.begin_iteration(self.doc, wanted, now)
	end
	local own = self.doc.nietz
	local offered: { session.Offer } = own.offered or json.array({} :: { session.Offer })
	for _, question in found do
		table.insert(offered, question)
	end
	own.offered = offered
	self.focus = nil
	self.techniques = {}
	self.weak_point = nil
	app.save(self)
end

--- How much of a question an answer must say, and how many words of it at least, for the question to be settled.
local SETTLED, SETTLED_WORDS = 0.75, 3

--- Leaves out the questions of the open iteration that an answer to another one has settled: it says what they ask about.
local function leave_out_settled(self: app.App, answer: string)
	local entry = session.open_iteration(self.doc)
	for index = #entry.questions, #entry.responses + 1, -1 do
		local question = entry.questions[index]
		local words = #similarity.words(question)
		if words >= SETTLED_WORDS and similarity.shared_words(question, answer) >= SETTLED * words then
			ui.say(self.t("ask.settled", { question = question }))
			session.drop_question(self.doc, index)
		end
	end
end

--- Asks what the open iteration has left. Returns a signal where a command leads elsewhere.
local function ask_open_questions(self: app.App): app.Signal?
	local entry = session.open_iteration(self.doc)
	local all = false
	while #entry.responses < #entry.questions do
		local count = #entry.questions
		local index = #entry.responses + 1
		local question = offered_question(self, entry.questions[index])
		local answer: string?, signal: app.Signal? = nil, nil
		if not all then
			answer, signal = ask_question(self, question, index, count)
			all = self.options.turbo and answer ~= nil and text.fold(answer) == ALL
		end
		if all then
			answer = question.suggestions[1] or ""
		end
		if answer ~= nil then
			session.add_answer(self.doc, answer)
			leave_out_settled(self, answer)
			app.save(self)
		elseif signal ~= nil and signal.go == "next" then
			for _ = index, count do
				session.add_answer(self.doc, "")
			end
		elseif signal ~= nil and signal.go == "again" then
			ui.say(translations.counted(self.t, "ask.anew", count - index + 1))
			begin_questions(self, true)
			entry = session.open_iteration(self.doc)
		elseif signal ~= nil then
			return signal
		end
	end
	return nil
end

--- After `back`: asks the restored questions again. Other answers make a new iteration at the end of the history, so
--- that what was said before stays; the same answers lead forward again. Each is kept as it comes, whatever ends the run.
local function revisit(self: app.App): app.Signal?
	local own = self.doc.nietz
	local entry = session.open_iteration(self.doc)
	local kept = own.revisit
	if kept == nil or kept.iteration ~= entry.iteration then
		kept = { iteration = entry.iteration, replies = json.array({} :: { string }) }
		own.revisit = kept
	end
	local replies = (kept :: any).replies :: { string }
	for index = #replies + 1, #entry.questions do
		local earlier = entry.responses[index] or ""
		local question = offered_question(self, entry.questions[index])
		local answer, signal = ask_question(self, question, index, #entry.questions, earlier)
		if answer ~= nil then
			table.insert(replies, answer)
			app.save(self)
		elseif signal ~= nil and signal.go == "again" then
			begin_questions(self, false)
			return ask_open_questions(self)
		elseif signal ~= nil and signal.go ~= "next" then
			return signal
		else
			break
		end
	end
	local changed = false
	for index, reply in replies do
		changed = changed or reply ~= (entry.responses[index] or "")
	end
	own.revisit = nil
	if not changed then
		path.go_forward(self.doc)
		return { go = "jump" }
	end
	session.begin_iteration(self.doc, entry.questions, clock.now())
	for index = 1, #entry.questions do
		session.add_answer(self.doc, replies[index] or "")
	end
	app.save(self)
	return nil
end

--- Runs one iteration. Returns nil when it came to its end, or where a command leads.
function iterate.run(self: app.App): app.Signal?
	local signal: app.Signal?
	if session.has_later_iterations(self.doc) then
		signal = revisit(self)
	else
		if session.is_between_iterations(self.doc) then
			begin_questions(self, false)
		end
		signal = ask_open_questions(self)
	end
	if signal ~= nil then
		return signal
	end
	scoring.run(self)
	app.save(self)
	return nil
end

return iterate
