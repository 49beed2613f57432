--!strict
--- The next questions: a model writes them, those that are empty, double or were asked before are left out, and questions of
--- the language file fill up. So there are always questions, whatever the model.

local app = require("./app")
local context = require("./context")
local ems = require("./ems")
local json = require("@nietz/json")
local lang = require("./lang")
local ledger = require("../common/ledger")
local list = require("../common/list")
local noting = require("./noting")
local scoring = require("./scoring")
local session = require("./session")
local shape = require("../common/shape")
local similarity = require("../common/similarity")
local techniques = require("./techniques")
local text = require("@nietz/text")
local translations = require("../common/translations")
local yaml = require("@nietz/yaml")

local questions = {}

export type Question = { question: string, priority: string, suggestions: { string } }

--- What the prompt asks a question about, by axis.
local TARGETS: { [string]: string } = yaml.load("./prompts/targets.yaml")
--- What a large mind's questions are for.
local DIRECTIONS: { [string]: string } = yaml.load("./prompts/large/directions.yaml")
--- The axes on which questions close a subject.
local CLOSING = { "clarity", "decisions", "action" }
local MAX_SUGGESTIONS = 4
--- A reply is a line, not a paragraph.
local LONGEST_REPLY = 90

local function questions_schema(count: number): shape.Shape
	-- A constrained model writes names in their order: the question first, then what depends on it.
	return shape.list_of("questions", math.min(2, count), count, {
		question = shape.text(8, 180),
		replies = shape.list(shape.text(2, LONGEST_REPLY), 2, MAX_SUGGESTIONS),
		urgency = { enum = { "critical", "important", "info" } },
	})
end

--- Two questions that share more than this are one.
local SAME = 0.6

--- A question with more than this part of a target's words only echoes the prompt.
local ECHO = 0.75

--- Whether a question only says again what it was to be about, as small models like to do.
local function echoes_prompt(line: string): boolean
	for _, target in TARGETS do
		if similarity.shared_words(target, line) > ECHO * #similarity.words(target) then
			return true
		end
	end
	return false
end

--- Returns the replies that are whole. A small model may cut one sentence into several replies.
local function uncut_replies(raw: { string }): { string }
	local kept: { string } = {}
	local cut = false
	for _, value in raw do
		local line = app.to_line(value)
		local goes_on = cut and string.match(line, "^%l") ~= nil
		cut = string.sub(line, -1) == ","
		local opening = table.find({ "for example", "par exemple" }, text.fold((string.gsub(line, "[,:%.]+$", "")))) ~= nil
		if not cut and not goes_on and not opening then
			table.insert(kept, line)
		end
	end
	return kept
end

local function usable_suggestions(self: app.App, raw: { string }, question: string): { string }
	local said: { string } = { question }
	for _, entry in self.doc.session.history do
		for _, response in entry.responses do
			table.insert(said, response)
		end
	end
	local kept: { string } = {}
	for _, value in uncut_replies(raw) do
		local line = app.to_whole_line(value, LONGEST_REPLY)
		-- Models like to number their lists; we letter them ourselves.
		line = string.gsub(string.gsub(line, "^[%-%*•%s]+", ""), "^[%(%[]?%w?[%)%.%]:]%s*", "")
		-- A question is no answer, and neither is the question itself, or what the user has said already.
		local answers = string.sub(line, -1) ~= "?" and #similarity.words(line) > 0 and not similarity.repeats(line, said)
		if answers and not similarity.repeats(line, kept) and #kept < MAX_SUGGESTIONS then
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
function questions.keep_usable(self: app.App, raw: { noting.Asked }, asked: { string }, count: number): { Question }
	local kept: { Question } = {}
	local seen = table.clone(asked)
	for _, item in raw do
		local line = app.to_line(item.question, 200)
		-- Fewer than two meaningful words is no question, whatever mark it ends with.
		if #kept < count and #similarity.words(line) >= 2 and not echoes_prompt(line) and not similarity.repeats(line, seen, SAME) then
			table.insert(seen, line)
			table.insert(kept, { question = line, priority = item.urgency, suggestions = usable_suggestions(self, item.replies, line) })
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

--- Returns questions of the language file on the weakest axes that were not asked yet.
function questions.fallback_questions(self: app.App, asked: { string }, count: number): { Question }
	local kept: { Question } = {}
	local order = ems.weak_axes(self.doc.nietz.axes, self.doc.session.phase)
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

--- Returns the techniques that the next questions are to use, in words.
local function used_techniques(self: app.App): { translations.Vars }
	return list.map(self.techniques, function(technique): translations.Vars
		return techniques.in_language(technique, self.lang)
	end)
end

--- Returns the next questions of a small mind.
local function ask_small(self: app.App, asked: { string }, count: number): { Question }
	local vars = context.prompt_vars(self)
	vars.count = count
	vars.weak_point = self.weak_point or ""
	local targets: { string } = {}
	for index, key in ems.weak_axes(self.doc.nietz.axes, self.doc.session.phase) do
		if index <= (if self.weak_point then count - 1 else count) then
			table.insert(targets, TARGETS[key])
		end
	end
	vars.targets = targets
	vars.focus = self.focus or ""
	vars.techniques = used_techniques(self)
	local value = app.ask_model(self, {
		prompt = "questions",
		vars = vars,
		schema = questions_schema(count),
		temperature = 0.7,
		-- There are questions to go on with: a slow model is not asked a third time.
		repairs = 1,
		check = function(value: { questions: { noting.Asked } }): string?
			if #questions.keep_usable(self, value.questions, asked, count) == 0 then
				return "every question was empty, repeats this prompt, or has been asked before; ask about the subject"
			end
			return nil
		end,
	})
	return if value then questions.keep_usable(self, value.questions, asked, count) else {}
end

--- Returns those of a large mind's questions that are worth asking, in its own order: a later one may depend on an earlier one.
--- Only what was asked word for word is left out.
function questions.keep_new(self: app.App, raw: { noting.Asked }, asked: { string }, count: number): { Question }
	local seen: { [string]: boolean } = {}
	for _, question in asked do
		seen[ledger.plain(question)] = true
	end
	local kept: { Question } = {}
	for _, item in raw do
		local line = text.trim((string.gsub(item.question, "%s+", " ")))
		if #kept < count and line ~= "" and not seen[ledger.plain(line)] then
			seen[ledger.plain(line)] = true
			local suggestions: { string } = {}
			for _, reply in item.replies do
				-- Models like to letter their lists; we letter them ourselves.
				local bare = string.gsub(text.trim((string.gsub(reply, "%s+", " "))), "^[%(%[]?%w[%)%]%.]%s+", "")
				if #suggestions < MAX_SUGGESTIONS and bare ~= "" and table.find(suggestions, bare) == nil then
					table.insert(suggestions, bare)
				end
			end
			table.insert(kept, { question = line, priority = item.urgency, suggestions = suggestions })
		end
	end
	return kept
end

--- Returns what the next questions are for.
local function direction(self: app.App): string
	if self.focus ~= nil and self.focus ~= "" then
		return (string.gsub(DIRECTIONS.focus, "{focus}", function(): string
			return self.focus :: string
		end))
	end
	local s = self.doc.session
	local weak: { string } = {}
	for index, key in ems.weak_axes(self.doc.nietz.axes, s.phase) do
		-- While opening up, nobody is pushed for who does what; while closing, nothing is opened.
		local fits = if s.phase == "convergent" then table.find(CLOSING, key) ~= nil else s.phase ~= "divergent" or key ~= "action"
		if index <= 2 and fits then
			table.insert(weak, TARGETS[key])
		end
	end
	local line = DIRECTIONS[s.phase]
	return if #weak > 0 then `{line} {string.gsub(DIRECTIONS.weak, "{weak}", table.concat(weak, "; "))}` else line
end

--- Returns the next questions of a large mind. In a light session, what was said last is taken down in the same call.
local function ask_large(self: app.App, asked: { string }, count: number): { Question }
	if app.is_light(self) and #noting.unread(self.doc) > 0 then
		local before = table.clone(self.doc.nietz.axes)
		local noted = noting.run(self, { weigh = true, questions = count, direction = direction(self) })
		scoring.show(self, noted, before)
		return questions.keep_new(self, noted.questions, asked, count)
	end
	local value = app.ask_model(self, {
		prompt = "questions",
		vars = { count = count, direction = direction(self), weak_point = self.weak_point or "", techniques = used_techniques(self) },
		schema = shape.object({ "questions" }, { questions = noting.questions_shape(count) }),
		temperature = 0.7,
		repairs = 1,
		check = function(value: { questions: { noting.Asked } }): string?
			return if #questions.keep_new(self, value.questions, asked, count) == 0 then "all of this was asked before" else nil
		end,
	})
	return if value then questions.keep_new(self, value.questions, asked, count) else {}
end

--- How many questions a light session gets at once: so many answers cost one call.
local AT_ONCE = 3

--- Returns the next questions: at least one, as long as the language file has one that was not asked. `fresh` is whether an
--- iteration begins with them, and may so begin with what is ready.
function questions.next(self: app.App, count: number, fresh: boolean): { Question }
	local own = self.doc.nietz
	local asked = session.asked_questions(self.doc)
	local ready: { Question } = (own.prepared or {}) :: { Question }
	own.prepared = nil
	local found: { Question } = if fresh and self.focus == nil then ready else {}
	local small = self.mind == "small"
	if #found == 0 then
		local wanted = if app.is_light(self) then math.max(count, AT_ONCE) else count
		found = if small then ask_small(self, asked, count) else ask_large(self, asked, wanted)
	end
	-- Too few are left to think about: questions of the language file fill up. A large mind has its reasons for few.
	local least = if small then math.min(2, count) else 1
	for _, question in found do
		table.insert(asked, question.question)
	end
	for _, question in questions.fallback_questions(self, asked, least - #found) do
		table.insert(found, question)
	end
	local now: { Question }, later = {}, json.array({} :: { Question })
	for index, question in found do
		if index <= count then
			table.insert(now, question)
		else
			table.insert(later, question)
		end
	end
	own.prepared = if #later > 0 then later else nil
	return now
end

return questions
