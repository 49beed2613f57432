--!strict
--- What a large mind reads: the whole conversation, told once as it happens and never told anew, so that what comes later goes on
--- from what was sent before.

local app = require("./app")
local ledger = require("../common/ledger")
local list = require("../common/list")
local look = require("../common/look")
local personas = require("@nietz/personas")
local session = require("./session")
local template = require("@nietz/template")
local text = require("@nietz/text")

local conversation = {}

local function said_by_user(self: app.App): { ledger.Entry }
	return ledger.holding(self.book)
end

--- Tells the request, what the user says beside it, and files.
function conversation.tell_case(self: app.App)
	app.tell(
		self,
		template.render("./prompts/case.md", {
			today = app.today(self),
			request = self.doc.requestText,
			facts = said_by_user(self),
			files = self.files,
		})
	)
end

--- The longest line of a file that is told, in letters.
local LONGEST_LINE = 300

local function told_line(line: look.Line): string
	return `{line.path}:{line.number}\t{text.truncate(line.text, LONGEST_LINE)}`
end

--- Returns all that is known by now without the debate, as one text: for those who have not heard the debate.
function conversation.case(self: app.App): string
	local parts = {
		template.render("./prompts/case.md", {
			today = app.today(self),
			request = self.doc.requestText,
			facts = said_by_user(self),
			files = self.files,
		}),
	}
	local assumed = list.map(self.doc.assumptionLog, function(assumption: session.Assumption): string
		return `- {assumption.assumption}`
	end)
	if #assumed > 0 then
		table.insert(parts, "# Assumed, because nobody answered\n\n" .. table.concat(assumed, "\n"))
	end
	if #self.cited > 0 then
		table.insert(parts, "# Lines of the project that were looked up\n\n" .. table.concat(list.map(self.cited, told_line), "\n"))
	end
	return text.trim((string.gsub(table.concat(parts, "\n\n"), "\n\n\n+", "\n\n")))
end

--- Tells what came of a question.
function conversation.tell_answer(self: app.App, question: session.Question, lines: { string }, assumption: string?)
	local is_open = question.status == "deferred" or (question.status == "skipped" and question.suggestedDefault == nil)
	local told = if is_open
		then `The user left "{question.question}" open: nothing is assumed in its place.`
		elseif assumption ~= nil then `Assumed, because the user did not answer "{question.question}": {assumption}`
		elseif #lines > 0 then table.concat(lines, "\n")
		else `The user answered "{question.question}": {question.userAnswer.answer}`
	local answer = question.userAnswer
	local is_default = question.status == "answered" and answer ~= nil and answer.answer == question.suggestedDefault
	app.tell(self, if is_default then `{told} (They took the default that was offered.)` else told)
end

--- Tells what is debated and by whom, with the words of everybody who sits here: once, and not again in each prompt of theirs.
function conversation.tell_table(self: app.App, seats: { personas.Persona })
	app.tell(
		self,
		template.render("./prompts/table.md", {
			topic = self.doc.metadata.topic,
			options = self.doc.metadata.options,
			seats = list.map(seats, function(seat): app.Values
				return { name = seat.name, words = text.trim(personas.render(seat, { lang = self.lang })) }
			end),
		})
	)
end

--- Returns those of these lines that nobody was told yet, and notes that they are told.
function conversation.new_lines(self: app.App, lines: { look.Line }): { look.Line }
	return list.filter(lines, function(line): boolean
		local is_new = not list.some(self.cited, function(one): boolean
			return one.path == line.path and one.number == line.number
		end)
		if is_new then
			table.insert(self.cited, line)
		end
		return is_new
	end)
end

--- Returns a turn of the debate as others read it: who stands for what and recommends what, and whom it answers.
--- `found` are lines of the project that it cites and that nobody was told before.
function conversation.turn(turn: session.Turn, points: { app.Point }, found: { look.Line }): string
	local meta = turn.metadata
	local lines = { `## {turn.sender.name} stands for {meta.stance}, with confidence {meta.confidence}`, "" }
	for _, point in points do
		local answered = ""
		for _, response in meta.responds do
			if response.id == point.id then
				local how = if response.how == "challenges" then "against" else "with"
				answered = ` ({how} {response.to} of {response.name})`
			end
		end
		table.insert(lines, `{point.id}{answered}: {point.text}`)
	end
	for _, proposal in meta.proposed or {} :: { session.Option } do
		table.insert(lines, `Proposes {proposal.id}, which stands below`)
	end
	table.insert(lines, `Recommends: {meta.recommends}`)
	for _, line in found do
		table.insert(lines, told_line(line))
	end
	return table.concat(lines, "\n")
end

--- Tells a cycle when all have spoken.
function conversation.tell_cycle(self: app.App, number: number, told: { string }, new_options: { session.Option })
	local parts = { `# Cycle {number}`, "" }
	for _, part in told do
		table.insert(parts, part)
		table.insert(parts, "")
	end
	for _, option in new_options do
		local from = if option.from and #option.from > 0 then ` (from {table.concat(option.from, " and ")})` else ""
		table.insert(parts, `A new option, {option.id}{from} ("{session.name_of(option)}"): {option.text}`)
	end
	app.tell(self, table.concat(parts, "\n"))
end

--- Tells what the user said to all, or that something holds no longer.
function conversation.tell_user(self: app.App, head: string, lines: { string })
	if #lines > 0 then
		app.tell(self, `# {head}\n\n{table.concat(lines, "\n")}`)
	end
end

return conversation
