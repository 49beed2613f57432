--!strict
--- The crutches of a small mind, all of them and nowhere else: one prompt a call, with the latest of the debate, in lines that are
--- kept short by the schema, and points that are looked at for what is none. A large mind has the whole conversation instead.

local agreement = require("./agreement")
local app = require("./app")
local known = require("./known")
local ledger = require("../common/ledger")
local list = require("../common/list")
local session = require("./session")
local similarity = require("../common/similarity")
local template = require("@nietz/template")

local small = {}

--- How many earlier points a persona is reminded of, and how many points an answer may rest on: the latest.
small.MAX_EARLIER, small.MAX_POINTS = 24, 80
--- Two questions that share more than this are one.
small.SAME = 0.6

--- The longest texts of a schema, in letters.
function small.most(is_small: boolean, letters: number): number?
	return if is_small then letters else nil
end

--- Returns the variables of every prompt about the session.
function small.case_vars(self: app.App): app.Values
	local settled: { app.Values } = {}
	for _, question in self.doc.clarificationQuestions do
		if question.status == "answered" then
			table.insert(settled, { question = question.question, answer = question.userAnswer.answer })
		end
	end
	local assumed = list.map(self.doc.assumptionLog, function(assumption: session.Assumption): string
		return assumption.assumption
	end)
	local facts: { string }, said: { string } = {}, {}
	for _, entry in ledger.holding(self.book, nil, { "context", "remark", "fact" }) do
		table.insert(if entry.kind == "context" then facts else said, entry.text)
	end
	for _, file in self.files do
		table.insert(facts, `{file.path}:\n{file.text}`)
	end
	return {
		case = template.render("./prompts/small/case.md", {
			today = app.today(self),
			request = self.doc.requestText,
			facts = table.concat(facts, " "),
			settled = settled,
			assumed = assumed,
			said = said,
			gone = known.taken_back(self),
		}),
		topic = self.doc.metadata.topic or self.doc.requestText,
		options = app.open_options(self),
	}
end

--- Returns the latest points from before the last cycle, so that nobody repeats them.
function small.earlier_points(self: app.App): { string }
	local last = self.doc.debateCycles
	local found: { string } = {}
	for index = #self.points, 1, -1 do
		local point = self.points[index]
		if point.cycle < last and #found < small.MAX_EARLIER then
			table.insert(found, 1, `{point.by}: {point.text}`)
		end
	end
	return found
end

--- Returns the latest points, for the answer.
function small.recent_points(self: app.App): { app.Point }
	local found: { app.Point } = {}
	for index, point in self.points do
		if index > #self.points - small.MAX_POINTS then
			table.insert(found, point)
		end
	end
	return found
end

--- Removes from a reply what is no point: single words, and options handed back.
function small.keep_real_points(self: app.App, value: app.Values)
	local options = list.map(app.open_options(self), function(option: session.Option): string
		return option.text
	end)
	value.points = list.filter(list.map(value.points, app.to_line), function(line: string): boolean
		local is_slip = #similarity.words(line) == 0 or string.find(line, "%w%s+%w") == nil
		return not is_slip and not similarity.echoes(line, options)
	end)
end

--- Returns the points of which none says what another one said in nearly the same words.
function small.without_repeats(points: { string }): { string }
	local said: { string } = {}
	for _, line in points do
		if not similarity.repeats(line, said, agreement.SAME) then
			table.insert(said, line)
		end
	end
	return said
end

return small
