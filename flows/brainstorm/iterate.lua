--!strict
--- One iteration: questions, answers, score, save. It goes on from wherever the session stands, so that it serves a
--- fresh session, one that was stopped between two answers, and one that went back.

local app = require("./app")
local ask = require("./ask")
local clock = require("@nietz/clock")
local list = require("../common/list")
local questions = require("./questions")
local scoring = require("./scoring")
local session = require("./session")
local text = require("@nietz/text")

local iterate = {}

--- Returns what is known about a question of the session file besides its text: the file keeps texts alone, so the
--- suggestions stand in `flow_state.offered`.
local function details(self: app.App, question: string): questions.Question
	for _, offer in self.doc.session.flow_state.offered or {} do
		if offer.question == question then
			return offer
		end
	end
	return { question = question, priority = "important", suggestions = {} }
end

local function options(question: questions.Question): { ask.Option }
	return list.map(question.suggestions, function(suggestion): ask.Option
		return { value = suggestion, label = suggestion }
	end)
end

--- Returns one question with its suggestions as Markdown. It is the prompt, whole, so that whoever is asked needs
--- nothing else: an editor, a script, a run that was resumed.
local function posed(self: app.App, question: questions.Question, index: number, count: number, earlier: string?): string
	local lines: { string } = {}
	table.insert(lines, `{self.t(`priorities.{question.priority}`)} · {self.t("ask.number", { index = index, count = count })}`)
	table.insert(lines, "")
	table.insert(lines, `**{question.question}**`)
	table.insert(lines, "")
	for number, suggestion in question.suggestions do
		table.insert(lines, `- **{ask.letter(number)}** {suggestion}`)
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
local function put(self: app.App, question: questions.Question, index: number, count: number, earlier: string?): (string?, app.Signal?)
	local first = question.suggestions[1]
	local default = if earlier ~= nil and earlier ~= "" then earlier elseif self.switches.turbo then first else nil
	return ask.line(self, {
		id = "answer",
		prompt = posed(self, question, index, count, earlier),
		options = options(question),
		default = default,
	})
end

local function open(self: app.App, again: boolean)
	local limit = self.switches.questions
	local answered = if again then #session.current(self.doc).responses else 0
	local found = questions.next(self, math.max(1, limit - answered))
	local texts: { string } = {}
	for _, question in found do
		table.insert(texts, question.question)
	end
	local now = clock.now()
	if again then
		session.reopen(self.doc, texts)
	else
		session.open(self.doc, texts, now)
	end
	local state = self.doc.session.flow_state
	state.offered = state.offered or {}
	for _, question in found do
		table.insert(state.offered, question)
	end
	self.focus = nil
	self.techniques = {}
	self.weak_point = nil
	app.save(self)
end

--- Asks what the open iteration has left. Returns a signal where a command leads elsewhere.
local function answer_open(self: app.App): app.Signal?
	local entry = session.current(self.doc)
	local count = #entry.questions
	local all = false
	while #entry.responses < #entry.questions do
		local index = #entry.responses + 1
		local question = details(self, entry.questions[index])
		local answer: string?, signal: app.Signal? = nil, nil
		if not all then
			answer, signal = put(self, question, index, count)
			all = self.switches.turbo and answer ~= nil and text.fold(answer) == ALL
		end
		if all then
			answer = question.suggestions[1] or ""
		end
		if answer ~= nil then
			session.answer(self.doc, answer, clock.now())
			app.save(self)
		elseif signal ~= nil and signal.go == "next" then
			for _ = index, count do
				session.answer(self.doc, "", clock.now())
			end
		elseif signal ~= nil and signal.go == "again" then
			open(self, true)
			entry = session.current(self.doc)
			count = #entry.questions
		elseif signal ~= nil then
			return signal
		end
	end
	return nil
end

--- After `back`: asks the restored questions again. Other answers make a new iteration at the end of the history, so
--- that what was said before stays; the same answers lead forward again.
local function revisit(self: app.App): app.Signal?
	local entry = session.current(self.doc)
	local replies: { string } = {}
	local changed = false
	for index, asked in entry.questions do
		local earlier = entry.responses[index] or ""
		local question = details(self, asked)
		local answer, signal = put(self, question, index, #entry.questions, earlier)
		if answer ~= nil then
			changed = changed or answer ~= earlier
			table.insert(replies, answer)
		elseif signal ~= nil and signal.go == "again" then
			open(self, false)
			return answer_open(self)
		elseif signal ~= nil and signal.go ~= "next" then
			return signal
		else
			break
		end
	end
	if not changed then
		session.forward(self.doc)
		return { go = "jump" }
	end
	local now = clock.now()
	session.open(self.doc, entry.questions, now)
	for index = 1, #entry.questions do
		session.answer(self.doc, replies[index] or "", now)
	end
	app.save(self)
	return nil
end

--- Runs one iteration. Returns nil when it came to its end, or where a command leads.
function iterate.once(self: app.App): app.Signal?
	local signal: app.Signal?
	if session.has_ahead(self.doc) then
		signal = revisit(self)
	else
		if session.between(self.doc) then
			open(self, false)
		end
		signal = answer_open(self)
	end
	if signal ~= nil then
		return signal
	end
	scoring.run(self)
	app.save(self)
	return nil
end

return iterate
