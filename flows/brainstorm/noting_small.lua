--!strict
--- Takes down what the user said, with a small mind. It reads pieces with ids and may name two ideas and two decisions, each from
--- one piece whose words it must share; whatever it leaves goes into the ledger as the user said it. All crutches of this are in
--- `../common/mind.lua`.

local app = require("./app")
local context = require("./context")
local ems = require("./ems")
local ledger = require("../common/ledger")
local mind = require("../common/mind")
local notebook = require("./notebook")
local noting = require("./noting")
local session = require("./session")
local shape = require("../common/shape")
local similarity = require("../common/similarity")

local noting_small = {}

--- A piece of what the user said. A model gives its id as evidence, so that evidence cannot be made up.
export type Piece = { id: string, text: string, question: string }

--- The id for no evidence.
local NONE = "none"
--- How much of a line must stand in the piece that it points to.
local ENOUGH = 0.6

local function score_schema(pieces: { Piece }): shape.Shape
	local ids: { string } = {}
	for _, piece in pieces do
		table.insert(ids, piece.id)
	end
	local or_none = table.clone(ids)
	table.insert(or_none, NONE)
	local line = shape.text(5, 140)
	local properties: { [string]: shape.Shape } = {
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

--- Returns the pieces of what the user said now, each with the question that it answers.
local function user_pieces(self: app.App): { Piece }
	local found: { Piece } = {}
	local function add(question: string, answer: string)
		for _, piece in similarity.statements(answer) do
			if #found < mind.CRUTCHES.pieces then
				local shown = app.to_line(piece, mind.CRUTCHES.note_letters)
				table.insert(found, { id = `S{#found + 1}`, question = question, text = shown })
				question = ""
			end
		end
	end
	for _, pair in context.answered_pairs(session.open_iteration(self.doc)) do
		add(pair.question, pair.answer)
	end
	for _, note in session.notes(self.doc, { "user" }) do
		-- What was said of a round before the iteration was not weighed with the one before.
		local between = not note.read and note.about ~= nil
		if note.iteration == self.doc.session.iteration or between then
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

--- Whether a model's line says what the piece says: the user is not credited with what they did not say.
local function rests_on(line: string, piece: string): boolean
	return similarity.shared_words(line, piece) >= math.max(1, ENOUGH * #similarity.words(line))
end

--- What a model makes of the pieces, beside the axes.
type Judgement = { ideas: { { from: string, idea: string, score: number } }, decided: { { from: string, decision: string } } }

local function add_ideas_and_decisions(self: app.App, value: Judgement, pieces: { Piece }, change: ledger.Change)
	local doc = self.doc
	local function known(kind: string): { string }
		-- The subject itself is neither an idea nor a decision.
		local lines: { string } = { doc.nietz.topic }
		for _, entry in notebook.holding(doc, { kind }) do
			table.insert(lines, entry.text)
		end
		return lines
	end
	local function keep(kind: string, line: string, piece: string, score: number?)
		if not similarity.repeats(line, known(kind)) then
			local made = notebook.add(doc, kind, line, { quote = piece, score = score })
			if made ~= nil then
				table.insert(change.added, made)
			end
		end
	end
	for _, idea in value.ideas do
		local piece = piece_text(pieces, idea.from)
		local line = app.to_line(idea.idea, 140)
		keep("idea", if rests_on(line, piece) then line else piece, piece, math.clamp(idea.score, 0, 10))
	end
	for _, decision in value.decided do
		local piece = piece_text(pieces, decision.from)
		local line = app.to_line(decision.decision, 140)
		if rests_on(line, piece) then
			keep("decision", line, piece)
		end
	end
end

--- Returns each axis' claim with the words that it points to, and keeps those for `status`.
local function read_claims(self: app.App, value: { [string]: ems.Claim }, pieces: { Piece }): { [string]: ems.Claim }
	local own = self.doc.nietz
	local kept: { [string]: string } = own.evidence or {}
	own.evidence = kept
	local found: { [string]: ems.Claim } = {}
	for _, axis in ems.AXES do
		local claim = value[axis.key]
		local evidence = piece_text(pieces, claim.evidence)
		found[axis.key] = { score = claim.score, evidence = evidence }
		if evidence ~= "" then
			kept[axis.key] = evidence
		end
	end
	return found
end

--- Takes down what was said in the open iteration, and weighs it.
function noting_small.run(self: app.App): noting.Noted
	local doc = self.doc
	local new = noting.unread(doc)
	local said = noting.text_of(new)
	local noted: noting.Noted = { change = { added = {}, revoked = {}, refused = {} }, held = {}, questions = {}, said = said }
	local vars = context.prompt_vars(self, doc.session.iteration - 1)
	local pieces = user_pieces(self)
	vars.pieces = pieces
	local value = app.ask_model(self, { prompt = "score", vars = vars, schema = score_schema(pieces), temperature = 0, plain = true })
	if value ~= nil then
		local axes, held = ems.limit_change(doc.nietz.axes, read_claims(self, value, pieces), said)
		session.set_axes(doc, axes)
		noted.held = held
		add_ideas_and_decisions(self, value, pieces, noted.change)
	end
	noting.add_uncovered(doc, new, noted.change, {})
	noting.mark_read(doc)
	return noted
end

return noting_small
