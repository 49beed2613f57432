--!strict
--- Going back to an earlier iteration and forward again. Nothing is taken out of the history: what a session left does not count
--- (`session.counts`) until it is there again.

local ems = require("./ems")
local session = require("./session")

local path = {}

export type Place = { iteration: number, ems: number, phase: string, axes: ems.Axes, question: string }

--- Returns the session's state that no history entry has: its last iteration may be answered and scored, and the phase may
--- have changed since.
local function snapshot(doc: session.Doc): Place
	local s = doc.session
	return { iteration = s.iteration, ems = s.ems, phase = s.phase, axes = table.clone(doc.nietz.axes), question = s.last_question }
end

local function move_to(doc: session.Doc, index: number): Place
	local s = doc.session
	local from = snapshot(doc)
	local entry = s.history[index]
	local began = session.began(doc, entry.iteration)
	s.iteration = entry.iteration
	s.ems = entry.ems
	s.phase = entry.phase
	doc.nietz.axes = if began then table.clone(began.axes) else ems.even_axes(entry.ems)
	doc.nietz.revisit = nil
	s.last_question = entry.questions[1] or ""
	return from
end

--- Goes back `steps` iterations and returns where the session stood, or nil and the furthest possible step.
function path.go_back(doc: session.Doc, steps: number): (Place?, number)
	local index = session.current_index(doc)
	local furthest = math.clamp(index - 1, 0, session.MAX_BACK)
	if steps < 1 or steps > furthest then
		return nil, furthest
	end
	if index == #doc.session.history then
		doc.nietz.tip = snapshot(doc)
	end
	return move_to(doc, index - steps), furthest
end

--- Goes forward one iteration after a `back`, and returns where the session stood, or nil at the end. At the end the session
--- is exactly as it was when it went back.
function path.go_forward(doc: session.Doc): Place?
	if not session.has_later_iterations(doc) then
		return nil
	end
	local from = move_to(doc, session.current_index(doc) + 1)
	local s = doc.session
	local own = doc.nietz
	local tip = own.tip
	if tip ~= nil and tip.iteration == s.iteration then
		s.ems, s.phase, own.axes, s.last_question = tip.ems, tip.phase, table.clone(tip.axes), tip.question
		own.tip = nil
	end
	return from
end

return path
