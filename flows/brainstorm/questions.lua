--!strict
--- The next questions: asked for from a model, cleaned of what is empty, doubled or asked before, and replaced by
--- plain ones where nothing usable is left. So there are always questions, whatever the model.

local app = require("./app")
local context = require("./context")
local ems = require("./ems")
local lang = require("./lang")
local session = require("./session")
local shape = require("../common/shape")
local similarity = require("../common/similarity")
local text = require("@nietz/text")
local yaml = require("@nietz/yaml")

local questions = {}

export type Question = { question: string, priority: string, suggestions: { string } }

--- What the prompt asks a question about, by axis.
local TARGETS: { [string]: string } = yaml.load("./prompts/targets.yaml")
local MOST_SUGGESTIONS = 4
--- A reply is a line, not a paragraph.
local LONGEST_REPLY = 90

local function schema(count: number): { [string]: any }
	-- A constrained model writes names in their order: the question first, then what hangs on it.
	return shape.list_of("questions", math.min(2, count), count, {
		question = shape.text(8, 180),
		replies = shape.list(shape.text(2, LONGEST_REPLY), 2, MOST_SUGGESTIONS),
		urgency = { enum = { "critical", "important", "info" } },
	})
end

--- Two questions that share more than this are one.
local SAME = 0.6

--- How much of a target's words makes a question an echo of the prompt.
local ECHO = 0.75

--- Whether a question only says again what it was to be about, as small models like to do.
local function echoes(line: string): boolean
	for _, target in TARGETS do
		if similarity.shared_words(target, line) > ECHO * #similarity.words(target) then
			return true
		end
	end
	return false
end

--- Returns the replies that stand on their own. A small model may cut one sentence into several replies.
local function whole_replies(raw: { any }): { string }
	local kept: { string } = {}
	local cut = false
	for _, value in raw do
		local line = app.line(value)
		local goes_on = cut and string.match(line, "^%l") ~= nil
		cut = string.sub(line, -1) == ","
		local opening = table.find({ "for example", "par exemple" }, text.fold((string.gsub(line, "[,:%.]+$", "")))) ~= nil
		if not cut and not goes_on and not opening then
			table.insert(kept, line)
		end
	end
	return kept
end

local function suggestions(self: app.App, raw: { any }, question: string): { string }
	local said: { string } = { question }
	for _, entry in self.doc.session.history do
		for _, response in entry.responses do
			table.insert(said, response)
		end
	end
	local kept: { string } = {}
	for _, value in whole_replies(raw) do
		local line = app.whole(value, LONGEST_REPLY)
		-- Models like to number their lists; we letter them ourselves.
		line = string.gsub(string.gsub(line, "^[%-%*•%s]+", ""), "^[%(%[]?%w?[%)%.%]:]%s*", "")
		-- A question is no answer, and neither is the question itself, or what the user has said already.
		local answers = string.sub(line, -1) ~= "?" and #similarity.words(line) > 0 and not similarity.repeats(line, said)
		if answers and not similarity.repeats(line, kept) and #kept < MOST_SUGGESTIONS then
			table.insert(kept, line)
		end
	end
	for _, key in { "ask.undecided", "ask.irrelevant" } do
		if #kept < 2 then
			table.insert(kept, self.t(key))
		end
	end
	return kept
end

--- Returns those of a model's questions that are worth asking. `asked` are all earlier ones.
function questions.clean(self: app.App, raw: { any }, asked: { string }, count: number): { Question }
	local kept: { Question } = {}
	local seen = table.clone(asked)
	for _, item in raw do
		local line = app.line(item.question, 200)
		-- Fewer than two meaningful words is no question, whatever mark stands behind it.
		if #kept < count and #similarity.words(line) >= 2 and not echoes(line) and not similarity.repeats(line, seen, SAME) then
			table.insert(seen, line)
			table.insert(kept, { question = line, priority = item.urgency, suggestions = suggestions(self, item.replies, line) })
		end
	end
	local rank: { [string]: number } = { critical = 1, important = 2, info = 3 }
	local place: { [string]: number } = {}
	for index, question in kept do
		place[question.question] = rank[question.priority] * 10 + index
	end
	table.sort(kept, function(a: Question, b: Question): boolean
		return place[a.question] < place[b.question]
	end)
	return kept
end

--- Returns plain questions on the weakest axes that have not been asked yet.
function questions.plain(self: app.App, asked: { string }, count: number): { Question }
	local kept: { Question } = {}
	local order = ems.weak(self.doc.session.flow_state.axes, self.doc.session.phase)
	for _, axis in ems.AXES do
		if table.find(order, axis.key) == nil then
			table.insert(order, axis.key)
		end
	end
	for _, key in order do
		for _, item in lang.data(self.lang, `fallback.{key}`) do
			if #kept < count and table.find(asked, item.question) == nil then
				table.insert(kept, { question = item.question, priority = "important", suggestions = item.suggestions })
				-- One of each axis first: three questions on one axis tire.
				break
			end
		end
	end
	return kept
end

--- Returns the next questions, at least one as long as the plain ones last.
function questions.next(self: app.App, count: number): { Question }
	local asked = session.asked(self.doc)
	local vars = context.of(self)
	vars.count = count
	vars.targets = {}
	vars.weak_point = self.weak_point or ""
	for index, key in vars.weak do
		if index <= (if self.weak_point then count - 1 else count) then
			table.insert(vars.targets, TARGETS[key])
		end
	end
	vars.focus = self.focus or ""
	vars.techniques = {}
	for _, technique in self.techniques do
		table.insert(vars.techniques, { name = technique.name[self.lang], text = technique[self.lang] })
	end
	local value = app.think(self, {
		prompt = "questions",
		vars = vars,
		schema = schema(count),
		temperature = 0.7,
		-- There are plain questions to go on with: a slow model is not asked a third time.
		repairs = 1,
		check = function(value: any): string?
			if #questions.clean(self, value.questions, asked, count) == 0 then
				return "every question was empty, repeats this prompt, or has been asked before; ask about the subject"
			end
			return nil
		end,
	})
	local found: { Question } = if value then questions.clean(self, value.questions, asked, count) else {}
	-- What is left may be too little to think about: plain questions fill it up.
	for _, question in found do
		table.insert(asked, question.question)
	end
	for _, question in questions.plain(self, asked, math.min(2, count) - #found) do
		table.insert(found, question)
	end
	return found
end

return questions
