--!strict
--- Takes down what the user said, with a large mind: one call proposes what goes into the ledger, and may weigh how mature the idea
--- is and ask the next questions, too. A sentence of the user's on which no entry rests becomes one as it stands: a model that
--- passes over it loses nothing.

local app = require("./app")
local ems = require("./ems")
local ledger = require("../common/ledger")
local list = require("../common/list")
local notebook = require("./notebook")
local session = require("./session")
local shape = require("../common/shape")
local similarity = require("../common/similarity")
local text = require("@nietz/text")
local transcript = require("./transcript")

local noting = {}

export type Pair = { question: string, answer: string, iteration: number, part: session.Part }
--- A question as a large mind writes it.
export type Asked = { question: string, replies: { string }, urgency: string }
--- What came of a turn: the changes of the ledger, which axes were held back for want of evidence, and questions, as they came.
export type Noted = { change: ledger.Change, held: { [string]: string }, questions: { Asked }, said: string }
export type Wants = {
	weigh: boolean,
	questions: number?,
	direction: string?,
	--- Leaves the answers of an open iteration to its end.
	notes_alone: boolean?,
}

--- A sentence of fewer words is taken down with its question.
local MIN_WORDS = 4

--- Returns what the user said that the ledger does not have, in the iterations that count: answers, and notes; or notes alone.
function noting.unread(doc: session.Doc, notes_alone: boolean?): { Pair }
	local found: { Pair } = {}
	local history: { session.Iteration } = if notes_alone then {} else session.counted_history(doc)
	for _, entry in history do
		local began = session.began(doc, entry.iteration)
		local read = if began then began.read or 0 else 0
		for index, response in entry.responses do
			if index > read and response ~= "" then
				table.insert(found, {
					question = entry.questions[index] or "",
					answer = response,
					iteration = entry.iteration,
					part = { kind = "answer", turn = entry.iteration, at = index },
				})
			end
		end
	end
	for _, note in session.notes(doc, { "user" }) do
		if not note.read then
			table.insert(found, {
				question = note.about or "",
				answer = note.text,
				iteration = note.iteration,
				part = { kind = "note", turn = note.iteration, at = table.find(doc.nietz.notes, note) :: number },
			})
		end
	end
	return found
end

--- Keeps that the ledger has all that was said up to now, or all notes.
function noting.mark_read(doc: session.Doc, notes_alone: boolean?)
	local history: { session.Iteration } = if notes_alone then {} else session.counted_history(doc)
	for _, entry in history do
		local began = session.began(doc, entry.iteration)
		if began ~= nil then
			began.read = #entry.responses
		end
	end
	for _, note in session.notes(doc, { "user" }) do
		note.read = true
	end
end

--- Returns the answers as one text.
function noting.text_of(pairs_: { Pair }): string
	local lines: { string } = {}
	for _, pair in pairs_ do
		table.insert(lines, pair.answer)
	end
	return table.concat(lines, "\n")
end

--- The shape of the next questions, in the order in which they are thought of.
function noting.questions_shape(count: number): shape.Shape
	return shape.list(
		shape.object({ "question", "replies", "urgency" }, {
			question = shape.text(8),
			replies = shape.list(shape.text(1), 2, 4),
			urgency = { enum = { "critical", "important", "info" } },
		}),
		math.min(2, count),
		count
	)
end

local function schema_of(wants: Wants): shape.Shape
	local line = shape.text(1)
	local perhaps: shape.Shape = { type = "string" }
	local members: { [string]: shape.Shape } = {
		said = shape.list(shape.object({ "quote", "kind", "text" }, { quote = line, kind = { enum = notebook.SAID }, text = line })),
		decided = shape.list(
			shape.object({ "quote", "text", "why", "rejected" }, { quote = line, text = line, why = perhaps, rejected = perhaps })
		),
		planned = shape.list(shape.object({ "quote", "kind", "text", "owner", "date" }, {
			quote = line,
			kind = { enum = notebook.PLANNED },
			text = line,
			owner = perhaps,
			date = perhaps,
		})),
		revoked = shape.list(shape.object({ "id", "quote" }, { id = { type = "integer" }, quote = line })),
		private = shape.list(line),
		nothing = shape.list(line),
	}
	local names = { "said", "decided", "planned", "revoked", "private", "nothing" }
	if wants.weigh then
		for _, axis in ems.AXES do
			members[axis.key] = shape.object({ "evidence", "score" }, { evidence = perhaps, score = shape.integer(0, 100) })
			table.insert(names, axis.key)
		end
	end
	if wants.questions ~= nil then
		members.questions = noting.questions_shape(wants.questions)
		table.insert(names, "questions")
	end
	return shape.object(names, members)
end

--- What a model takes down.
type Minutes = {
	said: { ledger.Proposed },
	decided: { { quote: string, text: string, why: string, rejected: string } },
	planned: { ledger.Proposed },
	revoked: { ledger.Revoking },
	private: { string }?,
}

--- What stands before reasons.
local BEFORE_REASONS = { "because of ", "because ", "parce que ", "car ", "à cause de " }

--- Returns a reason without what stands before reasons, mistyped too, which the brief says, and without parts that the decision
--- says already.
local function bare_reason(why: string, decision: string): string
	local typed = string.match(why, "^%S+") or ""
	local meant = if #typed == #"because" then text.nearest(string.lower(typed), { "because" }) else nil
	local bare = (meant or typed) .. string.sub(why, #typed + 1)
	for _, word in BEFORE_REASONS do
		if string.sub(bare, 1, #word) == word then
			bare = string.sub(bare, #word + 1)
			break
		end
	end
	local parts: { string } = {}
	for _, part in string.split(bare, ",") do
		local plain = text.fold(text.trim(part))
		if plain ~= "" and string.find(text.fold(decision), plain, 1, true) == nil then
			table.insert(parts, text.trim(part))
		end
	end
	return table.concat(parts, ", ")
end

--- Returns the entries that a model proposes, as the ledger takes them.
local function proposal_of(value: Minutes): ledger.Proposal
	local entries: { ledger.Proposed } = {}
	--- What rests on a confidence is no entry.
	local function is_private(quote: string): boolean
		return list.some(value.private or {} :: { string }, function(private): boolean
			return ledger.is_said(quote, private)
		end)
	end
	for _, item in value.said do
		table.insert(entries, item)
	end
	for _, item in value.decided do
		table.insert(
			entries,
			{ kind = "decision", text = item.text, quote = item.quote, why = bare_reason(item.why, item.text), rejected = item.rejected }
		)
	end
	for _, item in value.planned do
		table.insert(entries, item)
	end
	return {
		entries = list.filter(entries, function(item): boolean
			return not is_private(item.quote or "")
		end),
		revoked = value.revoked,
	}
end

--- Gives each entry the iteration in which its words were said, where several were taken down at once.
local function place(change: ledger.Change, new: { Pair })
	for _, entry in change.added do
		for _, pair in new do
			if ledger.is_said(entry.quote or entry.text, pair.answer) then
				entry.turn = pair.iteration
			end
		end
	end
end

--- Whether a sentence is only a greeting, a sigh, or what announces a list.
local function says_nothing(sentence: string): boolean
	local announces = string.sub(sentence, -1) == ":"
	return announces or (#similarity.words(sentence) == 0 and string.find(sentence, "%d") == nil)
end

--- Adds the sentences on which nothing rests, in the user's own words; a short one with its question.
function noting.add_uncovered(doc: session.Doc, new: { Pair }, change: ledger.Change, others: { string })
	local quotes = table.clone(others)
	for _, entry in change.added do
		table.insert(quotes, entry.quote or entry.text)
	end
	local book = doc.nietz.ledger
	for _, pair in new do
		local first = ledger.sentences(pair.answer)[1]
		for _, sentence in ledger.uncovered(book, pair.iteration, pair.answer, quotes) do
			-- It is the first sentence that answers the question; those behind it go on from there.
			local short = sentence == first and #string.split(sentence, " ") < MIN_WORDS and pair.question ~= ""
			if says_nothing(sentence) and sentence ~= text.trim(pair.answer) then
				continue
			end
			local made = notebook.add(doc, "fact", if short then `{pair.question} {sentence}` else sentence, { quote = sentence })
			if made ~= nil then
				made.turn = pair.iteration
				table.insert(change.added, made)
			end
		end
	end
end

--- Returns each axis' claim with the words that it points to, which must have been said, and keeps those for `status`.
local function read_claims(self: app.App, value: { [string]: ems.Claim }, said: string): { [string]: ems.Claim }
	local own = self.doc.nietz
	local kept: { [string]: string } = own.evidence or {}
	own.evidence = kept
	local found: { [string]: ems.Claim } = {}
	for _, axis in ems.AXES do
		local claim = value[axis.key]
		local evidence = if ledger.is_said(claim.evidence, said) then claim.evidence else ""
		found[axis.key] = { score = claim.score, evidence = evidence }
		if evidence ~= "" then
			kept[axis.key] = evidence
		end
	end
	return found
end

--- Whether nothing was taken down before: the subject was said, too.
local function is_first(doc: session.Doc): boolean
	for _, began in doc.nietz.iterations do
		if (began.read or 0) > 0 then
			return false
		end
	end
	return true
end

--- Returns the user's notes on which no score could rest yet.
local function unweighed(doc: session.Doc): { session.Note }
	return list.filter(session.notes(doc, { "user" }), function(note): boolean
		return not note.weighed
	end)
end

--- Returns those of these notes that the ledger has, as parts of the conversation.
local function read_parts(doc: session.Doc, notes: { session.Note }): { session.Part }
	local found: { session.Part } = {}
	for _, note in notes do
		if note.read then
			table.insert(found, { kind = "note", turn = note.iteration, at = table.find(doc.nietz.notes, note) :: number })
		end
	end
	return found
end

--- Takes down what the ledger does not have yet. Where no model can, the user's sentences are taken as they stand.
function noting.run(self: app.App, wants: Wants): Noted
	local doc = self.doc
	local new = noting.unread(doc, wants.notes_alone)
	local said = noting.text_of(new)
	local noted: Noted = { change = { added = {}, revoked = {}, refused = {} }, held = {}, questions = {}, said = said }
	if #new == 0 then
		return noted
	end
	local axes: { { key: string, score: number } } = {}
	for _, axis in ems.AXES do
		table.insert(axes, { key = axis.key, score = doc.nietz.axes[axis.key] or 0 })
	end
	local notes: { session.Note } = if wants.weigh then unweighed(doc) else {}
	local value = app.ask_model(self, {
		prompt = "ledger",
		plain = true,
		temperature = 0,
		vars = {
			new = transcript.names(
				doc,
				list.map(new, function(pair): session.Part
					return pair.part
				end)
			),
			first = is_first(doc),
			weigh = wants.weigh,
			noted = transcript.names(doc, read_parts(doc, notes)),
			axes = axes,
			count = wants.questions or 0,
			direction = wants.direction or "",
		},
		schema = schema_of(wants),
	})
	local quoted: { string } = {}
	if value ~= nil then
		local year = tonumber(string.sub(doc.session.created, 1, 4)) or 0
		-- "Last year" and "in March" have a year that nobody says.
		local known = `{doc.nietz.topic}\n{year - 1} {year} {year + 1}\n{transcript.text(doc)}`
		for _, file in self.reading.files do
			known ..= "\n" .. file.text
		end
		noted.change = notebook.apply(doc, proposal_of(value), said, transcript.said(doc), known)
		place(noted.change, new)
		noted.questions = value.questions or {}
		-- What takes an entry away is covered by that; what answers an open question says something.
		for _, entry in noted.change.revoked do
			for _, item in value.revoked do
				if item.id == entry.id and entry.kind ~= "open" then
					table.insert(quoted, item.quote)
				end
			end
		end
		for _, item in value.nothing do
			table.insert(quoted, item)
		end
		for _, item in value.private or {} do
			table.insert(quoted, item)
			session.keep_private(doc, item, `{said}\n{transcript.said(doc)}`)
		end
		if wants.weigh then
			-- What was taken down earlier, in the iteration or in a round before it, counts, too.
			local weighed = said .. "\n" .. session.current_answers(doc)
			for _, note in notes do
				weighed ..= "\n" .. note.text
				note.weighed = true
			end
			local after, held = ems.limit_change(doc.nietz.axes, read_claims(self, value, weighed), weighed)
			session.set_axes(doc, after)
			noted.held = held
		end
	end
	noting.add_uncovered(doc, new, noted.change, quoted)
	noting.mark_read(doc, wants.notes_alone)
	return noted
end

--- Takes down what is left, at once and without weighing, and shows it: before a brief all of it, and after a round of voices what
--- the user said of it. A small mind is not asked again: what is left is taken as it stands.
function noting.catch_up(self: app.App, notes_alone: boolean?)
	local new = noting.unread(self.doc, notes_alone)
	if #new == 0 then
		return
	end
	local change: ledger.Change = { added = {}, revoked = {}, refused = {} }
	if self.mind == "large" then
		change = noting.run(self, { weigh = false, notes_alone = notes_alone }).change
	elseif not notes_alone then
		noting.add_uncovered(self.doc, new, change, {})
		noting.mark_read(self.doc)
	end
	notebook.show(self, change)
	app.save(self)
end

return noting
