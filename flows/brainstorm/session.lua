--!strict
--- The session document: how it is made, filled with defaults, and what is added to it. Pure (time comes in as a text), so that
--- every step can be tested. Going back and forward is in `path.lua`, what holds in `notebook.lua`.

local clock = require("@nietz/clock")
local ems = require("./ems")
local json = require("@nietz/json")
local ledger = require("../common/ledger")
local list = require("../common/list")
local text = require("@nietz/text")

local session = {}

--- What an iteration began with, and which one it follows: after `back`, not the one before it.
export type Began = {
	iteration: number,
	after: number,
	axes: ems.Axes,
	persona: string,
	--- How long the session was when it began, and how many of its answers the ledger has.
	seconds: number?,
	read: number?,
}
--- Something that was said outside of the questions of an iteration: by the user (`user`), or by a model.
--- `read`: the ledger has it; `weighed`: a score could rest on it.
export type Note = { iteration: number, text: string, kind: string?, about: string?, by: string?, read: boolean?, weighed: boolean? }
export type Offer = { question: string, priority: string?, suggestions: { string }? }
export type Risk = {
	risk: string,
	probability: number,
	impact: number,
	mitigation: string,
	iteration: number,
}
export type Approach = { name: string, how: string, price: string, recommended: boolean?, chosen: boolean? }

--- A part of the conversation as models are told it: the answer to a question of an iteration, a round of voices, a note or an
--- entry of the ledger, each by its number there.
export type Part = { kind: "answer" | "round" | "note" | "entry", turn: number, at: number }
--- An iteration as the specification has it.
export type Iteration = {
	iteration: number,
	phase: string,
	ems: number,
	ems_delta: number,
	questions: { string },
	responses: { string },
	timestamp: string,
	duration: number,
}
export type ByRole = { persona: string, key_points: { string }, references: { string } }
export type ByExpert = { expert: string, framework: string?, position: string, references: { string } }
export type PartyRound = {
	round: number,
	topic: string,
	personas_selected: { string },
	contributions: { ByRole },
	synthesis: string,
	user_question: string,
}
export type PanelRound = {
	round: number,
	topic: string,
	phase: string,
	experts_selected: { string },
	contributions: { ByExpert },
	synthesis: { convergent: { string }, tensions: { string } },
}
--- What somebody said in a round.
export type Point = { by: string, text: string }
export type Idea = { id: number, content: string, score: number }
export type UsedTechnique = {
	iteration: number,
	technique_slug: string,
	category: string?,
	suggested_reason: string?,
	applied: boolean?,
	source: string?,
	weak_axes: { string }?,
}
export type Chances = { last_category: string?, category_counts: { [string]: number }? }
export type Progress = {
	divergent_completed: boolean,
	transition_completed: boolean,
	transition_summary: { [string]: unknown }?,
}
--- A session as the specification has it.
export type Session = {
	id: string,
	slug: string,
	status: string,
	phase: string,
	mode: string,
	ems: number,
	persona: string,
	iteration: number,
	techniques_used: { string },
	started_at: string,
	duration_minutes: number,
	techniques_history: { UsedTechnique },
	party_active: boolean,
	party_history: { PartyRound },
	panel_active: boolean,
	panel_history: { PanelRound },
	random_state: Chances?,
	progressive_state: Progress?,
	ideas: { Idea },
	history: { Iteration },
	last_question: string,
	created: string,
	updated: string,
}

--- What an item of a brief rests on: entries of the ledger, or nothing where it is its writer's own.
export type Rest = { section: string, text: string, from: { number } }

--- What the specification has no place for.
export type Own = {
	version: number,
	topic: string,
	axes: ems.Axes,
	seconds: number,
	ledger: ledger.Ledger,
	iterations: { Began },
	notes: { Note },
	risks: { Risk },
	voices: { string },
	--- Which party and panel rounds were held in which iteration, and the number of the last point that was made in each.
	rounds: { { kind: string, round: number, iteration: number, last: number? } },
	last_idea: number,
	--- What large minds were told, piece by piece, each of which was new to a call.
	told: { { Part } }?,
	evidence: { [string]: string }?,
	--- What was said in confidence: it is in no brief and no journal.
	private: { string }?,
	scored: number?,
	heard: number?,
	checkpoint: number?,
	crossed: boolean?,
	pinned: boolean?,
	asked_energy: { [string]: boolean }?,
	offered: { Offer }?,
	--- Questions that are ready and were not asked yet.
	prepared: { Offer }?,
	template: string?,
	biases: { { slug: string, iteration: number } }?,
	tip: { iteration: number, ems: number, phase: string, axes: ems.Axes, question: string }?,
	--- The answers that were given again after `back`, until there are all of them.
	revisit: { iteration: number, replies: { string } }?,
	thread: { from: string, next: string }?,
	--- Iterations beyond the limit that the user agreed to.
	more: number?,
	about: { paths: { string }, files: { { path: string, first: number, last: number, lines: number, sha256: string } } }?,
	--- The brief that was written, and the entries that its items rest on.
	brief: { path: string, sha256: string, rests: { Rest }? }?,
	approaches: { Approach }?,
}

--- One session file: `format_version` at the top, everything of the specification in `session`, and ours under one key.
export type Doc = { format_version: string, session: Session, nietz: Own }

--- The version of `nietz`.
session.OWN_VERSION = 1
--- The furthest that one `back` goes.
session.MAX_BACK = 5
--- Who leads unless somebody else was chosen.
session.LEADER = "architecte"
--- What an idea is worth until somebody says so.
session.UNRATED = 5

local function or_empty_array<T>(value: { T }?): { T }
	return if value == nil then json.array({} :: { T }) else value
end

--- Fills in what a file of ours or of another program may leave out.
local function fill_own(doc: Doc)
	local s = doc.session
	local own: any = doc.nietz or { version = session.OWN_VERSION }
	own.topic = own.topic or string.gsub(s.slug, "-", " ")
	own.axes = own.axes or ems.even_axes(s.ems)
	own.seconds = own.seconds or s.duration_minutes * 60
	for _, field in { "iterations", "risks", "notes", "voices", "rounds" } do
		own[field] = or_empty_array(own[field])
	end
	if own.ledger == nil then
		own.ledger = ledger.new()
		own.last_idea = 0
		for _, idea in s.ideas do
			ledger.add(own.ledger, { kind = "idea", text = idea.content, by = "user", turn = 0, score = idea.score, idea = idea.id })
			own.last_idea = math.max(own.last_idea, idea.id)
		end
	end
	own.last_idea = own.last_idea or 0
	-- Earlier, the risks of a brief were kept as if somebody had seen them in the session.
	own.risks = json.array(list.filter(own.risks, function(risk): boolean
		return not risk.drafted
	end))
	local known: { [number]: boolean } = {}
	for _, began in own.iterations do
		known[began.iteration] = true
	end
	local before = 0
	for _, entry in s.history do
		if not known[entry.iteration] then
			table.insert(own.iterations, {
				iteration = entry.iteration,
				after = before,
				axes = ems.even_axes(entry.ems),
				persona = s.persona,
			})
		end
		before = entry.iteration
	end
	doc.nietz = own
end

--- Fills in what a file may leave out, in place, and returns the document.
function session.fill_defaults(doc: Doc): Doc
	local s = doc.session
	for _, field in { "techniques_used", "techniques_history", "party_history", "panel_history", "ideas", "history" } do
		s[field] = or_empty_array(s[field])
	end
	local first = s.history[1]
	local date = string.match(s.id, "(%d%d%d%d%-%d%d%-%d%d)$")
	s.started_at = s.started_at or s.created or (first and first.timestamp) or `{date}T00:00:00Z`
	s.created = s.created or s.started_at
	s.updated = s.updated or s.created
	s.persona = s.persona or session.LEADER
	s.duration_minutes = s.duration_minutes or 0
	s.party_active = s.party_active or false
	s.panel_active = s.panel_active or false
	s.last_question = s.last_question or ""
	for _, entry in s.history do
		entry.questions = or_empty_array(entry.questions)
		entry.responses = or_empty_array(entry.responses)
		entry.ems_delta = entry.ems_delta or 0
	end
	fill_own(doc)
	return doc
end

--- Returns a new session.
function session.new(options: { topic: string, slug: string, now: string }): Doc
	local axes = ems.initial_axes()
	local doc: any = {
		format_version = "1.2",
		session = {
			id = `{options.slug}-{string.sub(options.now, 1, 10)}`,
			slug = options.slug,
			status = "in_progress",
			phase = "divergent",
			mode = "standard",
			ems = ems.combine(axes),
			persona = session.LEADER,
			iteration = 0,
			started_at = options.now,
			duration_minutes = 0,
			created = options.now,
			updated = options.now,
		},
		nietz = { version = session.OWN_VERSION, topic = options.topic, axes = axes, seconds = 0, scored = 0, pinned = false },
	}
	return session.fill_defaults(doc)
end

--- Returns the index of the session's iteration in the history; 0 where the history does not have it, as in a file from
--- elsewhere that has the number alone.
function session.current_index(doc: Doc): number
	for index, entry in doc.session.history do
		if entry.iteration == doc.session.iteration then
			return index
		end
	end
	return 0
end

--- Returns the history entry of the current iteration, or nil where there is none.
function session.current_entry(doc: Doc): Iteration?
	return doc.session.history[session.current_index(doc)]
end

--- Returns what an iteration began with, or nil in a file from elsewhere.
function session.began(doc: Doc, iteration: number): Began?
	for _, began in doc.nietz.iterations do
		if began.iteration == iteration then
			return began
		end
	end
	return nil
end

--- Returns the iteration that is open: there is one wherever a question is asked.
function session.open_iteration(doc: Doc): Iteration
	return assert(session.current_entry(doc), "no iteration is open") :: Iteration
end

--- Returns what a round of voices was about, and what was said in it, point by point; nothing where there is no such round.
function session.points(doc: Doc, kind: string, number: number): (string?, { Point })
	local found: { Point } = {}
	local topic: string? = nil
	local party, panel = doc.session.party_history[number], doc.session.panel_history[number]
	if kind == "party" and party ~= nil then
		topic = party.topic
		for _, contribution in party.contributions do
			for _, line in contribution.key_points do
				table.insert(found, { by = contribution.persona, text = line })
			end
		end
	elseif kind == "panel" and panel ~= nil then
		topic = panel.topic
		for _, contribution in panel.contributions do
			table.insert(found, { by = contribution.expert, text = contribution.position })
		end
	end
	return topic, found
end

--- Whether the session went back, so that later iterations are in the history.
function session.has_later_iterations(doc: Doc): boolean
	local index = session.current_index(doc)
	return index > 0 and index < #doc.session.history
end

--- Whether the session is between two iterations: no question is open, and no later iteration is in the history.
function session.is_between_iterations(doc: Doc): boolean
	local s = doc.session
	local entry = session.current_entry(doc)
	local done = entry == nil or (#entry.responses >= #entry.questions and (doc.nietz.scored or 0) >= s.iteration)
	return done and not session.has_later_iterations(doc)
end

--- Returns the iteration that an iteration follows; 0 for none.
function session.after(doc: Doc, iteration: number): number
	local began = session.began(doc, iteration)
	return if began then began.after else iteration - 1
end

--- Returns the iteration to which belongs what is said now: after `back`, the session stands where the one that is asked again
--- began, which is at the end of the one before.
function session.turn(doc: Doc): number
	local s = doc.session
	return if session.has_later_iterations(doc) then session.after(doc, s.iteration) else s.iteration
end

--- Returns whether an iteration counts: it led to where the session stands. Those that a `back` left do not.
function session.counts(doc: Doc): ledger.Counts
	local counted: { [number]: boolean } = { [0] = true }
	local at = session.turn(doc)
	while at > 0 and not counted[at] do
		counted[at] = true
		at = session.after(doc, at)
	end
	return function(turn: number): boolean
		return counted[turn] == true
	end
end

--- Returns the history entries that count, in order.
function session.counted_history(doc: Doc): { Iteration }
	local counts = session.counts(doc)
	local found: { Iteration } = {}
	for _, entry in doc.session.history do
		if counts(entry.iteration) then
			table.insert(found, entry)
		end
	end
	return found
end

--- Returns how many questions were answered, in the iterations that count.
function session.answers(doc: Doc): number
	local count = 0
	for _, entry in session.counted_history(doc) do
		for _, response in entry.responses do
			count += if response ~= "" then 1 else 0
		end
	end
	return count
end

--- Returns how many of these iterations have an answer.
function session.answered(doc: Doc): number
	local count = 0
	for _, entry in session.counted_history(doc) do
		local said = false
		for _, response in entry.responses do
			said = said or response ~= ""
		end
		count += if said then 1 else 0
	end
	return count
end

--- Marks the session as changed now, and adds the time since `since`, which is in the same sitting: the weeks between two
--- sittings are no time spent, neither in the session nor in an iteration.
function session.add_time(doc: Doc, now: string, since: string)
	local s = doc.session
	local spent = (clock.parse(now) or 0) - (clock.parse(since) or 0)
	doc.nietz.seconds += math.max(0, spent)
	s.duration_minutes = math.floor(doc.nietz.seconds / 60)
	s.updated = now
	local entry, began = session.current_entry(doc), session.began(doc, s.iteration)
	if entry ~= nil and began ~= nil and began.seconds ~= nil and (doc.nietz.scored or 0) < s.iteration then
		entry.duration = math.max(0, math.floor((doc.nietz.seconds - began.seconds) / 60))
	end
end

--- Begins the next iteration with these questions, at the end of the history: iterations that a `back` left behind stay.
function session.begin_iteration(doc: Doc, questions: { string }, now: string)
	local s = doc.session
	local own = doc.nietz
	local last = session.current_entry(doc)
	local after = session.turn(doc)
	local number = s.iteration
	own.tip = nil
	own.revisit = nil
	for _, entry in s.history do
		number = math.max(number, entry.iteration)
	end
	table.insert(s.history, {
		iteration = number + 1,
		phase = s.phase,
		ems = s.ems,
		ems_delta = if last then s.ems - last.ems else 0,
		questions = json.array(table.clone(questions)),
		responses = json.array {},
		timestamp = now,
		duration = 0,
	})
	table.insert(own.iterations, {
		iteration = number + 1,
		after = after,
		axes = table.clone(own.axes),
		persona = s.persona,
		seconds = own.seconds,
	})
	s.iteration = number + 1
	s.last_question = questions[1] or ""
end

--- Replaces the questions of the iteration that is open, for another angle on it.
function session.replace_open_questions(doc: Doc, questions: { string })
	local entry = session.open_iteration(doc)
	-- What was answered stays with its question; only the unanswered ones give way.
	local kept, answers = json.array({} :: { string }), json.array({} :: { string })
	for index, response in entry.responses do
		table.insert(kept, entry.questions[index])
		table.insert(answers, response)
	end
	for _, question in questions do
		table.insert(kept, question)
	end
	entry.questions, entry.responses = kept, answers
end

--- Leaves out a question of the open iteration that was not asked.
function session.drop_question(doc: Doc, index: number)
	table.remove(session.open_iteration(doc).questions, index)
end

--- Keeps which question is on the screen: `last_question` is the one that was asked, answered or not.
function session.put_question(doc: Doc, question: string)
	doc.session.last_question = question
end

--- Opens a session that was closed, because something was added to it. To look at one changes nothing.
function session.reopen(doc: Doc)
	doc.session.status = "in_progress"
end

--- Records the answer to the next question of the open iteration; an empty text where it was skipped.
function session.add_answer(doc: Doc, response: string)
	session.reopen(doc)
	local entry = session.open_iteration(doc)
	table.insert(entry.responses, response)
	doc.session.last_question = entry.questions[#entry.responses] or ""
end

--- Sets the axes, and the EMS that follows from them.
function session.set_axes(doc: Doc, axes: ems.Axes)
	doc.nietz.axes = axes
	doc.session.ems = ems.combine(axes)
end

--- Adds a note. `about` is the question that it answers.
function session.add_note(doc: Doc, value: string, kind: string, about: string?, by: string?)
	session.reopen(doc)
	table.insert(doc.nietz.notes, { iteration = session.turn(doc), text = value, kind = kind, about = about, by = by })
end

--- Keeps what the user said in confidence, once, if they said it.
function session.keep_private(doc: Doc, quote: string, said: string)
	local own = doc.nietz
	local kept: { string } = own.private or json.array({} :: { string })
	if ledger.is_said(quote, said) and table.find(kept, quote) == nil then
		table.insert(kept, quote)
		own.private = kept
	end
end

--- Returns a pattern for what was said in confidence: with any blanks between its words, any apostrophes, and no other word around it.
local function private_pattern(quote: string): string
	local escaped = string.gsub(quote, "[%^%$%(%)%%%.%[%]%*%+%-%?{}|\\/]", "\\%0")
	local pattern = string.gsub(string.gsub(escaped, "’", "'"), "'", "['’]")
	local open = if string.find(pattern, "^%w") ~= nil then "\\b" else ""
	local close = if string.find(pattern, "%w$") ~= nil then "\\b" else ""
	return `(?i){open}{string.gsub(pattern, "%s+", "\\s+")}{close}`
end

--- Returns a text without what was said in confidence: where the very words are not found, without the sentences that have them.
function session.without_private(doc: Doc, answer: string): string
	local shown = answer
	for _, quote in doc.nietz.private or {} :: { string } do
		local pattern = private_pattern(quote)
		local is_found = false
		local hit = text.search(shown, pattern)
		while hit ~= nil do
			is_found = true
			shown = `{string.sub(shown, 1, hit.first - 1)}[…]{string.sub(shown, hit.last + 1)}`
			hit = text.search(shown, pattern, hit.first + #"[…]")
		end
		local sentences: { string } = if is_found then {} else ledger.sentences(shown)
		for _, sentence in sentences do
			local from, to = string.find(shown, sentence, 1, true)
			if from ~= nil and to ~= nil and ledger.is_said(quote, sentence) then
				shown = `{string.sub(shown, 1, from - 1)}[…]{string.sub(shown, to + 1)}`
			end
		end
	end
	return shown
end

--- Whether words were said in confidence, or have what was.
function session.is_private(doc: Doc, words: string): boolean
	return list.some(doc.nietz.private or {} :: { string }, function(quote): boolean
		return ledger.is_said(words, quote) or ledger.is_said(quote, words)
	end)
end

--- Returns the notes of these kinds in the iterations that count.
function session.notes(doc: Doc, kinds: { string }): { Note }
	local counts = session.counts(doc)
	local found: { Note } = {}
	for _, note in doc.nietz.notes do
		if counts(note.iteration) and table.find(kinds, note.kind or "") ~= nil then
			table.insert(found, note)
		end
	end
	return found
end

--- Records a technique that was proposed, and that it was used if it was. `techniques_used` follows.
function session.add_technique(
	doc: Doc,
	entry: { slug: string, category: string, reason: string, applied: boolean, source: string, weak: { string } }
)
	local s = doc.session
	table.insert(s.techniques_history, {
		iteration = s.iteration,
		technique_slug = entry.slug,
		category = entry.category,
		suggested_reason = entry.reason,
		applied = entry.applied,
		source = entry.source,
		weak_axes = json.array(table.clone(entry.weak)),
	})
	if entry.applied and table.find(s.techniques_used, entry.slug) == nil then
		table.insert(s.techniques_used, entry.slug)
	end
end

--- Returns every question that somebody has seen, so that none is asked twice. Those that were prepared and put away for others
--- were not asked.
function session.asked_questions(doc: Doc): { string }
	local all: { string } = {}
	for _, entry in doc.session.history do
		local shown = if entry.iteration == doc.session.iteration then #entry.responses + 1 else #entry.questions
		for index, question in entry.questions do
			if index <= shown then
				table.insert(all, question)
			end
		end
	end
	return all
end

--- Returns what the user said in the open iteration as one text.
function session.current_answers(doc: Doc): string
	local entry = session.current_entry(doc)
	return if entry then table.concat(entry.responses, "\n") else ""
end

return session
