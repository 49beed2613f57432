--!strict
--- The session document: how it is made, filled with defaults, and moved from iteration to iteration. Pure (time comes in as a
--- text), so that every step can be tested.

local clock = require("@nietz/clock")
local ems = require("./ems")
local json = require("@nietz/json")

local session = {}

--- One session file, `format_version` at the top and everything else in `session`.
export type Doc = { format_version: string, session: any }

--- The furthest that one `back` goes.
session.MAX_BACK = 5

--- Who leads unless somebody else was chosen.
session.LEADER = "architecte"

local function or_empty_array(value: any): any
	return if value == nil then json.array {} else value
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
	local state = s.flow_state or {}
	state.topic = state.topic or string.gsub(s.slug, "-", " ")
	state.axes = state.axes or ems.even_axes(s.ems)
	state.seconds = state.seconds or s.duration_minutes * 60
	for _, field in { "decisions", "risks", "notes", "voices" } do
		state[field] = or_empty_array(state[field])
	end
	s.flow_state = state
	return doc
end

--- Returns a new session.
function session.new(options: { topic: string, slug: string, now: string }): Doc
	local axes = ems.initial_axes()
	return session.fill_defaults({
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

--- Marks the session as changed now, and adds the time since `since`, which is in the same sitting: the weeks between two
--- sittings are no time spent.
function session.add_time(doc: Doc, now: string, since: string)
	local s = doc.session
	local spent = (clock.parse(now) or 0) - (clock.parse(since) or 0)
	s.flow_state.seconds += math.max(0, spent)
	s.duration_minutes = math.floor(s.flow_state.seconds / 60)
	s.updated = now
end

--- Returns the index of the session's iteration in the history; 0 where the history does not have it, as in a file from
--- elsewhere that has the number alone.
local function current_index(doc: Doc): number
	for index, entry in doc.session.history do
		if entry.iteration == doc.session.iteration then
			return index
		end
	end
	return 0
end

--- Returns the history entry of the current iteration, or nil where there is none.
function session.current_entry(doc: Doc): any
	return doc.session.history[current_index(doc)]
end

--- Whether the session went back, so that later iterations are in the history.
function session.has_later_iterations(doc: Doc): boolean
	local index = current_index(doc)
	return index > 0 and index < #doc.session.history
end

--- Whether the session is between two iterations: no question is open, and no later iteration is in the history.
function session.is_between_iterations(doc: Doc): boolean
	local s = doc.session
	local entry = session.current_entry(doc)
	local done = entry == nil or (#entry.responses >= #entry.questions and (s.flow_state.scored or 0) >= s.iteration)
	return done and not session.has_later_iterations(doc)
end

--- Begins the next iteration with these questions, at the end of the history: iterations that a `back` left behind stay.
function session.begin_iteration(doc: Doc, questions: { string }, now: string)
	local s = doc.session
	local last = session.current_entry(doc)
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
function session.replace_open_questions(doc: Doc, questions: { string })
	local entry = session.current_entry(doc)
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
function session.add_answer(doc: Doc, response: string, now: string)
	local entry = session.current_entry(doc)
	table.insert(entry.responses, response)
	local minutes = ((clock.parse(now) or 0) - (clock.parse(entry.timestamp or now) or 0)) / 60
	entry.duration = math.max(0, math.floor(minutes))
	doc.session.last_question = entry.questions[#entry.responses] or ""
end

--- Sets the axes, and the EMS that follows from them.
function session.set_axes(doc: Doc, axes: ems.Axes)
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
function session.add_note(doc: Doc, where: string, value: string, kind: string?, about: string?)
	table.insert(doc.session.flow_state[where], { iteration = doc.session.iteration, text = value, kind = kind, about = about })
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

--- Returns the session's state that no history entry has: its last iteration may be answered and scored, and the phase may
--- have changed since.
local function snapshot(doc: Doc): any
	local s = doc.session
	return { iteration = s.iteration, ems = s.ems, phase = s.phase, axes = table.clone(s.flow_state.axes), question = s.last_question }
end

local function move_to(doc: Doc, index: number): any
	local s = doc.session
	local from = snapshot(doc)
	local entry = s.history[index]
	s.iteration = entry.iteration
	s.ems = entry.ems
	s.phase = entry.phase
	s.flow_state.axes = if entry.axes then table.clone(entry.axes) else ems.even_axes(entry.ems)
	s.last_question = entry.questions[1] or ""
	return from
end

--- Goes back `steps` iterations and returns where the session stood, or nil and the furthest possible step.
--- Nothing is taken out of the history.
function session.go_back(doc: Doc, steps: number): (any, number)
	local index = current_index(doc)
	local furthest = math.clamp(index - 1, 0, session.MAX_BACK)
	if steps < 1 or steps > furthest then
		return nil, furthest
	end
	if index == #doc.session.history then
		doc.session.flow_state.tip = snapshot(doc)
	end
	return move_to(doc, index - steps), furthest
end

--- Goes forward one iteration after a `back`, and returns where the session stood, or nil at the end. At the end the session
--- is exactly as it was when it went back.
function session.go_forward(doc: Doc): any
	if not session.has_later_iterations(doc) then
		return nil
	end
	local from = move_to(doc, current_index(doc) + 1)
	local s = doc.session
	local tip = s.flow_state.tip
	if tip ~= nil and tip.iteration == s.iteration then
		s.ems, s.phase, s.flow_state.axes, s.last_question = tip.ems, tip.phase, table.clone(tip.axes), tip.question
		s.flow_state.tip = nil
	end
	return from
end

--- Returns every question that was ever asked, so that none is asked twice.
function session.asked_questions(doc: Doc): { string }
	local all: { string } = {}
	for _, entry in doc.session.history do
		for _, question in entry.questions do
			table.insert(all, question)
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
