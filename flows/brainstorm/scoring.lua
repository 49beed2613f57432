--!strict
--- Scores what the user said in the open iteration: a model claims scores with evidence, and `ems.lua` decides what they are
--- worth. Ideas and decisions come out of the same call.

local app = require("./app")
local context = require("./context")
local ems = require("./ems")
local session = require("./session")
local shape = require("../common/shape")
local similarity = require("../common/similarity")
local ui = require("@nietz/ui")

local scoring = {}

--- A piece of what the user said. A model gives its id as evidence, so that evidence cannot be made up.
export type Piece = { id: string, text: string }

--- The id for no evidence.
local NONE = "none"
--- More pieces only confuse a model.
local MAX_PIECES = 12

local function score_schema(pieces: { Piece }): { [string]: any }
	local ids: { string } = {}
	for _, piece in pieces do
		table.insert(ids, piece.id)
	end
	local or_none = table.clone(ids)
	table.insert(or_none, NONE)
	local line = shape.text(5, 140)
	local properties: { [string]: any } = {
		ideas = shape.list(shape.record({ from = { enum = ids }, idea = line, score = shape.integer(0, 10) }), nil, 2),
		decided = shape.list(shape.record({ decision = line, from = { enum = ids } }), nil, 2),
	}
	local required = { "ideas", "decided" }
	for _, axis in ems.AXES do
		properties[axis.key] = shape.record({ evidence = { enum = or_none }, score = shape.integer(0, 100) })
		table.insert(required, axis.key)
	end
	return shape.object(required, properties)
end

--- Returns what the user said in the open iteration: answers, and notes that they added.
function scoring.said_in_iteration(self: app.App): string
	local lines: { string } = { session.current_answers(self.doc) }
	for _, note in self.doc.session.flow_state.notes do
		if note.kind == "user" and note.iteration == self.doc.session.iteration then
			table.insert(lines, note.text)
		end
	end
	return table.concat(lines, "\n")
end

--- Returns the pieces of what the user said now, each with the question that it answers.
local function user_pieces(self: app.App): { any }
	local found: { any } = {}
	local function add(question: string, answer: string)
		for _, piece in similarity.statements(answer) do
			if #found < MAX_PIECES then
				table.insert(found, { id = `S{#found + 1}`, question = question, text = app.to_line(piece, 240) })
				question = ""
			end
		end
	end
	for _, pair in context.answered_pairs(session.current_entry(self.doc)) do
		add(pair.question, pair.answer)
	end
	local state = self.doc.session.flow_state
	for _, note in state.notes do
		if note.kind == "user" and note.iteration == self.doc.session.iteration then
			add(note.about or "…", note.text)
		end
	end
	return found
end

local function piece_text(pieces: { Piece }, id: string): string
	for _, piece in pieces do
		if piece.id == id then
			return piece.text
		end
	end
	return ""
end

--- How much of a line must stand in the piece that it points to.
local ENOUGH = 0.6

--- Whether a model's line says what the piece says: the user is not credited with what they did not say.
local function rests_on(line: string, piece: string): boolean
	return similarity.shared_words(line, piece) >= math.max(1, ENOUGH * #similarity.words(line))
end

local function add_ideas_and_decisions(self: app.App, value: any, pieces: { Piece }): ({ string }, { string })
	local s = self.doc.session
	-- The subject itself is neither an idea nor a decision.
	local known: { string } = { s.flow_state.topic }
	for _, idea in s.ideas do
		table.insert(known, idea.content)
	end
	local ideas: { string } = {}
	for _, idea in value.ideas do
		local piece = piece_text(pieces, idea.from)
		local line = app.to_line(idea.idea, 140)
		if not rests_on(line, piece) then
			line = piece
		end
		if not similarity.repeats(line, known) then
			table.insert(known, line)
			table.insert(ideas, line)
			session.add_idea(self.doc, line, idea.score)
		end
	end
	local settled: { string } = { s.flow_state.topic }
	for _, decision in s.flow_state.decisions do
		table.insert(settled, decision.text)
	end
	local decided: { string } = {}
	for _, decision in value.decided do
		local line = app.to_line(decision.decision, 140)
		if rests_on(line, piece_text(pieces, decision.from)) and not similarity.repeats(line, settled) then
			table.insert(settled, line)
			table.insert(decided, line)
			session.add_note(self.doc, "decisions", line)
		end
	end
	return ideas, decided
end

--- Returns each axis' claim with the words that it points to, and keeps those for `status`.
local function read_claims(self: app.App, value: any, pieces: { Piece }): { [string]: ems.Claim }
	local state = self.doc.session.flow_state
	state.evidence = state.evidence or {}
	local found: { [string]: ems.Claim } = {}
	for _, axis in ems.AXES do
		local claim = value[axis.key]
		local evidence = piece_text(pieces, claim.evidence)
		found[axis.key] = { score = claim.score, evidence = evidence }
		if evidence ~= "" then
			state.evidence[axis.key] = evidence
		end
	end
	return found
end

local function bullet_list(title: string, lines: { string }): string
	return if #lines == 0 then "" else `\n\n{title}\n\n- ` .. table.concat(lines, "\n- ")
end

--- Shows the EMS as bars, with what changed since `before`.
function scoring.show_ems(self: app.App, before: ems.Axes?)
	local s = self.doc.session
	local old = if before then ems.combine(before) else s.ems
	local title = self.t("ems.title", {
		ems = s.ems,
		delta = ems.with_sign(s.ems - old),
		level = self.t(`levels.{ems.level(s.ems)}`),
		iteration = s.iteration,
	})
	if not self.options.chart then
		ui.say(title)
		return
	end
	ui.say(`**{title}**\n\n\`\`\`text\n{ems.chart(s.flow_state.axes, before, context.axis_labels(self))}\n\`\`\``)
end

local function advise(self: app.App)
	local s = self.doc.session
	local weak = ems.weak_axes(s.flow_state.axes, s.phase)
	local advice = ems.advice(s.ems, weak)
	if s.ems >= self.options.checkpoint and (s.flow_state.checkpoint or 0) == 0 then
		-- The checkpoint that comes next says it.
		return
	end
	local axis = weak[1] or "clarity"
	ui.say(self.t(`ems.advice.{advice}`, { axis = self.t(`axes.{axis}`) }))
end

--- Scores the open iteration, records ideas and decisions, and shows where the session stands.
function scoring.run(self: app.App)
	local s = self.doc.session
	local before = table.clone(s.flow_state.axes)
	local said = scoring.said_in_iteration(self)
	if #similarity.words(said) == 0 then
		ui.say(self.t("ems.said_nothing"))
		s.flow_state.scored = s.iteration
		return
	end
	local vars = context.prompt_vars(self, s.iteration - 1)
	local pieces = user_pieces(self)
	vars.pieces = pieces
	local value = app.ask_model(self, { prompt = "score", vars = vars, schema = score_schema(pieces), temperature = 0, plain = true })
	local ideas: { string }, decided: { string } = {}, {}
	local held: { [string]: boolean } = {}
	if value ~= nil then
		local axes, back = ems.limit_change(before, read_claims(self, value, pieces), said)
		session.set_axes(self.doc, axes)
		ideas, decided = add_ideas_and_decisions(self, value, pieces)
		held = back
	end
	s.flow_state.scored = s.iteration
	scoring.show_ems(self, before)
	local notes = bullet_list(self.t("ems.ideas"), ideas) .. bullet_list(self.t("ems.decided"), decided)
	local names: { string } = {}
	for _, axis in ems.AXES do
		if held[axis.key] then
			table.insert(names, self.t(`axes.{axis.key}`))
		end
	end
	if #names > 0 and self.options.chart then
		notes ..= "\n\n" .. self.t("ems.held", { axes = table.concat(names, ", ") })
	end
	if notes ~= "" then
		ui.say((string.gsub(notes, "^\n+", "")))
	end
	if self.options.suggest then
		advise(self)
	end
end

return scoring
