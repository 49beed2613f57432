--!strict
--- The session document: made, completed with defaults, and moved from iteration to iteration.
--- Pure: time comes in as a text, so that every step here can be tested.

local clock = require("@nietz/clock")
local ems = require("./ems")
local json = require("@nietz/json")

local session = {}

--- One session file, `format_version` at the top and everything else in `session`.
export type Doc = { format_version: string, session: any }

--- The furthest that one `back` goes.
session.MOST_BACK = 5

--- Who leads unless somebody else was chosen.
session.LEADER = "architecte"

local function list(value: any): any
	return if value == nil then json.array {} else value
end

--- Fills in what a file may leave out, in place, and returns the document.
function session.fill(doc: Doc): Doc
	local s = doc.session
	for _, field in { "techniques_used", "techniques_history", "party_history", "panel_history", "ideas", "history" } do
		s[field] = list(s[field])
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
		entry.questions = list(entry.questions)
		entry.responses = list(entry.responses)
		entry.ems_delta = entry.ems_delta or 0
	end
	local state = s.flow_state or {}
	state.topic = state.topic or string.gsub(s.slug, "-", " ")
	state.axes = state.axes or ems.flat(s.ems)
	state.seconds = state.seconds or s.duration_minutes * 60
	for _, field in { "decisions", "risks", "notes", "voices" } do
		state[field] = list(state[field])
	end
	s.flow_state = state
	return doc
end

--- Returns a new session.
function session.new(options: { topic: string, slug: string, now: string }): Doc
	local axes = ems.start()
	return session.fill({
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
			flow_state = { topic = options.topic, axes = axes, seconds = 0 },
		},
	})
end

--- Marks the session as changed now. `since` is when this sitting began or was last touched: the weeks between
--- two sittings are no time spent.
function session.touch(doc: Doc, now: string, since: string)
	local s = doc.session
	local spent = (clock.parse(now) or 0) - (clock.parse(since) or 0)
	s.flow_state.seconds += math.max(0, spent)
	s.duration_minutes = math.floor(s.flow_state.seconds / 60)
	s.updated = now
end

--- Returns where in the history the session stands; 0 where its iteration was not recorded, as in a file that
--- knows its number alone.
local function place(doc: Doc): number
	for index, entry in doc.session.history do
		if entry.iteration == doc.session.iteration then
			return index
		end
	end
	return 0
end

--- Returns the history entry that the session stands on, or nil where there is none.
function session.current(doc: Doc): any
	return doc.session.history[place(doc)]
end

--- Whether the session went back and has iterations ahead of it.
function session.has_ahead(doc: Doc): boolean
	local index = place(doc)
	return index > 0 and index < #doc.session.history
end

--- Whether the session stands between two iterations: nothing is open, and nothing lies ahead.
function session.between(doc: Doc): boolean
	local s = doc.session
	local entry = session.current(doc)
	local done = entry == nil or (#entry.responses >= #entry.questions and (s.flow_state.scored or 0) >= s.iteration)
	return done and not session.has_ahead(doc)
end

--- Begins the next iteration with these questions, after everything that is there: what lies ahead after a `back`
--- stays where it is.
function session.open(doc: Doc, questions: { string }, now: string)
	local s = doc.session
	local last = session.current(doc)
	local number = s.iteration
	s.flow_state.tip = nil
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
		axes = table.clone(s.flow_state.axes),
		persona = s.persona,
	})
	s.iteration = number + 1
	s.last_question = questions[1] or ""
end

--- Replaces the questions of the iteration that is open, for another angle on it.
function session.reopen(doc: Doc, questions: { string })
	local entry = session.current(doc)
	-- What was answered stays with its question; only the unanswered ones give way.
	local kept, replies = json.array({} :: { string }), json.array({} :: { string })
	for index, response in entry.responses do
		table.insert(kept, entry.questions[index])
		table.insert(replies, response)
	end
	for _, question in questions do
		table.insert(kept, question)
	end
	entry.questions, entry.responses = kept, replies
end

--- Records the answer to the next question of the open iteration; an empty text where it was skipped.
function session.answer(doc: Doc, response: string, now: string)
	local entry = session.current(doc)
	table.insert(entry.responses, response)
	local minutes = ((clock.parse(now) or 0) - (clock.parse(entry.timestamp or now) or 0)) / 60
	entry.duration = math.max(0, math.floor(minutes))
	doc.session.last_question = entry.questions[#entry.responses] or ""
end

--- Takes over the axes that an iteration led to.
function session.score(doc: Doc, axes: ems.Axes)
	doc.session.flow_state.axes = axes
	doc.session.ems = ems.combine(axes)
end

--- Adds an idea unless its text is empty, and returns its id.
function session.add_idea(doc: Doc, content: string, score: number): number
	local ideas = doc.session.ideas
	local highest = 0
	for _, idea in ideas do
		highest = math.max(highest, idea.id)
	end
	table.insert(ideas, {
		id = highest + 1,
		content = content,
		score = math.clamp(math.floor(score + 0.5), 0, 10),
		iteration = doc.session.iteration,
	})
	return highest + 1
end

--- Adds a line to one of the lists of `flow_state`: `decisions` or `notes`. `about` is the question that it answers.
function session.note(doc: Doc, where: string, value: string, kind: string?, about: string?)
	table.insert(doc.session.flow_state[where], { iteration = doc.session.iteration, text = value, kind = kind, about = about })
end

--- Records a technique that was proposed, and that it was used if it was. `techniques_used` follows.
function session.technique(
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

--- Where a session stands besides its history: the last iteration may be answered, scored and in another phase by now,
--- which no history entry says.
local function standing(doc: Doc): any
	local s = doc.session
	return { iteration = s.iteration, ems = s.ems, phase = s.phase, axes = table.clone(s.flow_state.axes), question = s.last_question }
end

local function stand_on(doc: Doc, index: number): any
	local s = doc.session
	local from = standing(doc)
	local entry = s.history[index]
	s.iteration = entry.iteration
	s.ems = entry.ems
	s.phase = entry.phase
	s.flow_state.axes = if entry.axes then table.clone(entry.axes) else ems.flat(entry.ems)
	s.last_question = entry.questions[1] or ""
	return from
end

--- Goes back `steps` iterations and returns where the session stood, or nil and the furthest possible step.
--- Nothing is taken out of the history.
function session.back(doc: Doc, steps: number): (any, number)
	local index = place(doc)
	local furthest = math.clamp(index - 1, 0, session.MOST_BACK)
	if steps < 1 or steps > furthest then
		return nil, furthest
	end
	if index == #doc.session.history then
		doc.session.flow_state.tip = standing(doc)
	end
	return stand_on(doc, index - steps), furthest
end

--- Goes forward one iteration after a `back`, and returns where the session stood, or nil at the end. Back at the end,
--- the session stands exactly as it did when it went back.
function session.forward(doc: Doc): any
	if not session.has_ahead(doc) then
		return nil
	end
	local from = stand_on(doc, place(doc) + 1)
	local s = doc.session
	local tip = s.flow_state.tip
	if tip ~= nil and tip.iteration == s.iteration then
		s.ems, s.phase, s.flow_state.axes, s.last_question = tip.ems, tip.phase, table.clone(tip.axes), tip.question
		s.flow_state.tip = nil
	end
	return from
end

--- Returns every question that was ever asked, so that none is asked twice.
function session.asked(doc: Doc): { string }
	local all: { string } = {}
	for _, entry in doc.session.history do
		for _, question in entry.questions do
			table.insert(all, question)
		end
	end
	return all
end

--- Returns what the user said in the open iteration as one text.
function session.said(doc: Doc): string
	local entry = session.current(doc)
	return if entry then table.concat(entry.responses, "\n") else ""
end

return session
