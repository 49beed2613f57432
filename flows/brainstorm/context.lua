--!strict
--- What a small mind is told about the session: little, because it gets lost in a whole transcript. Ideas and decisions stand for
--- older answers. (A large one reads `transcript.lua`.) What a `back` left is told to nobody.

local app = require("./app")
local ems = require("./ems")
local lang = require("./lang")
local list = require("../common/list")
local mind = require("../common/mind")
local notebook = require("./notebook")
local session = require("./session")
local similarity = require("../common/similarity")

local context = {}

local CRUTCHES = mind.CRUTCHES

local function last_items<T>(items: { T }, count: number): { T }
	local from = math.max(1, #items - count + 1)
	local found: { T } = {}
	for index = from, #items do
		table.insert(found, items[index])
	end
	return found
end

export type Pair = { question: string, answer: string }

--- Returns the answered questions of one history entry.
function context.answered_pairs(entry: session.Iteration): { Pair }
	local pairs_: { Pair } = {}
	for index, response in entry.responses do
		if response ~= "" then
			table.insert(pairs_, {
				question = app.to_line(entry.questions[index], CRUTCHES.question_letters),
				answer = app.to_line(response, CRUTCHES.answer_letters),
			})
		end
	end
	return pairs_
end

--- An answer with fewer meaningful words is given with its question.
local MIN_WORDS = 3
--- Two sentences that share more than this say the same.
local SAME = 0.6

--- Returns what the user said, each statement once. Questions are left out where possible, because small models repeat them.
local function distinct_statements(recent: { Pair }, lists: { { string } }): { string }
	local found: { string } = {}
	local function add(line: string)
		if not similarity.repeats(line, found, SAME) then
			table.insert(found, line)
		end
	end
	for _, pair in recent do
		add(if #similarity.words(pair.answer) < MIN_WORDS then `{pair.question} → {pair.answer}` else pair.answer)
	end
	for _, lines in lists do
		for _, line in lines do
			add(line)
		end
	end
	return found
end

export type Idea = { id: number, content: string, score: number, iteration: number }

--- Returns the ideas that hold, best first. `id` is the one of the ledger, by which the user rates them.
function context.ideas(self: app.App): { Idea }
	local ideas: { Idea } = {}
	for _, entry in notebook.holding(self.doc, { "idea" }) do
		local score = entry.score or session.UNRATED
		table.insert(ideas, { id = entry.id, content = entry.text, score = score, iteration = entry.turn })
	end
	table.sort(ideas, function(a: Idea, b: Idea): boolean
		return if a.score == b.score then a.id < b.id else a.score > b.score
	end)
	return ideas
end

--- Returns the user's notes that count: those of a model (threats, spikes, rivals) would lead a small mind away from what the user
--- says.
local function told_beside(self: app.App): { string }
	return list.map(last_items(session.notes(self.doc, { "user" }), CRUTCHES.notes), function(note): string
		return app.to_line(if note.about then `{note.about} → {note.text}` else note.text, CRUTCHES.note_letters)
	end)
end

--- Returns the exchanges of the last iterations, up to this one.
local function recent_pairs(self: app.App, upto: number): { Pair }
	local entries = list.filter(session.counted_history(self.doc), function(entry): boolean
		return entry.iteration <= upto and #context.answered_pairs(entry) > 0
	end)
	local recent: { Pair } = {}
	for _, entry in last_items(entries, CRUTCHES.recent) do
		for _, pair in context.answered_pairs(entry) do
			table.insert(recent, pair)
		end
	end
	return recent
end

--- Returns the ideas that are told, best first.
local function told_ideas(self: app.App): { string }
	local ideas: { string } = {}
	for index, idea in context.ideas(self) do
		if index <= CRUTCHES.ideas then
			table.insert(ideas, app.to_line(idea.content, 160))
		end
	end
	return ideas
end

--- Returns what the user said, each statement once.
function context.said(self: app.App, upto: number?): { string }
	return distinct_statements(recent_pairs(self, upto or self.doc.session.iteration), { told_ideas(self), told_beside(self) })
end

--- Returns the variables of every prompt about the session. `upto` is the last iteration that counts: the one that is scored
--- is left out.
function context.prompt_vars(self: app.App, upto: number?): app.Vars
	local s = self.doc.session
	local state = self.doc.nietz
	local decisions: { string } = {}
	for _, entry in last_items(notebook.holding(self.doc, { "decision" }), CRUTCHES.decisions) do
		table.insert(decisions, app.to_line(entry.text, CRUTCHES.note_letters))
	end
	local axes: { { key: string, score: number } } = {}
	for _, axis in ems.AXES do
		table.insert(axes, { key = axis.key, score = state.axes[axis.key] or 0 })
	end
	return {
		topic = app.to_line(state.topic, 500),
		template = self.options.template or "",
		phase = s.phase,
		ems = s.ems,
		axes = axes,
		weak = ems.weak_axes(state.axes, s.phase),
		ideas = told_ideas(self),
		decisions = decisions,
		notes = told_beside(self),
		recent = recent_pairs(self, upto or s.iteration),
		said = context.said(self, upto),
	}
end

--- Returns the axes' names in the user's language.
function context.axis_labels(self: app.App): { [string]: string }
	return lang.data(self.lang, "axes")
end

return context
