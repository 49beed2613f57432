--!strict
--- The variables that every prompt has: what a model is told about the session. Little: a small model gets lost in a whole
--- transcript and a long one costs money, so ideas and decisions stand for older answers.

local app = require("./app")
local ems = require("./ems")
local lang = require("./lang")
local similarity = require("../common/similarity")

local context = {}

--- How many answered iterations are given word for word.
local MAX_RECENT = 2
local MAX_IDEAS = 6
local MAX_DECISIONS = 6
local MAX_NOTES = 4

local function last_items(items: { any }, count: number): { any }
	local from = math.max(1, #items - count + 1)
	local found: { any } = {}
	for index = from, #items do
		table.insert(found, items[index])
	end
	return found
end

--- Returns the answered questions of one history entry.
function context.answered_pairs(entry: any): { { question: string, answer: string } }
	local pairs_: { { question: string, answer: string } } = {}
	for index, response in entry.responses do
		if response ~= "" then
			table.insert(pairs_, { question = app.to_line(entry.questions[index], 200), answer = app.to_line(response, 400) })
		end
	end
	return pairs_
end

--- An answer with fewer meaningful words is given with its question.
local MIN_WORDS = 3
--- Two sentences that share more than this say the same.
local SAME = 0.6

--- Returns what the user said, each statement once. Questions are left out where possible, because small models repeat them.
local function distinct_statements(recent: { any }, lists: { { string } }): { string }
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

--- Returns the ideas, best first.
function context.ideas(self: app.App): { any }
	local ideas = table.clone(self.doc.session.ideas)
	table.sort(ideas, function(a: any, b: any): boolean
		return if a.score == b.score then a.id < b.id else a.score > b.score
	end)
	return ideas
end

--- Returns the variables of every prompt about the session. `upto` is the last iteration that counts: the one that is scored
--- is left out.
function context.prompt_vars(self: app.App, upto: number?): { [string]: any }
	local s = self.doc.session
	local state = s.flow_state
	local entries: { any } = {}
	for _, entry in s.history do
		if entry.iteration <= (upto or s.iteration) and #context.answered_pairs(entry) > 0 then
			table.insert(entries, entry)
		end
	end
	local recent: { any } = {}
	for _, entry in last_items(entries, MAX_RECENT) do
		for _, pair in context.answered_pairs(entry) do
			table.insert(recent, pair)
		end
	end
	local ideas: { string } = {}
	for index, idea in context.ideas(self) do
		if index <= MAX_IDEAS then
			table.insert(ideas, app.to_line(idea.content, 160))
		end
	end
	local function note_texts(notes: { any }, most: number): { string }
		local found: { string } = {}
		for _, note in last_items(notes, most) do
			table.insert(found, app.to_line(if note.about then `{note.about} → {note.text}` else note.text, 240))
		end
		return found
	end
	-- The user's notes alone: those of a model (threats, spikes, rivals) would lead it away from what the user says.
	local notes: { any } = {}
	for _, note in state.notes do
		if note.kind == "user" then
			table.insert(notes, note)
		end
	end
	local told = note_texts(notes, MAX_NOTES)
	local axes: { any } = {}
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
		ideas = ideas,
		decisions = note_texts(state.decisions, MAX_DECISIONS),
		notes = told,
		recent = recent,
		said = distinct_statements(recent, { ideas, told }),
	}
end

--- Returns the axes' names in the user's language.
function context.axis_labels(self: app.App): { [string]: string }
	return lang.data(self.lang, "axes")
end

return context
