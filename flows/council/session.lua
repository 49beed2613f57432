--!strict
--- The session document, and how each turn and each event changes it. Pure: ids and times come in.
---
--- Everything that changes a session is a turn of its `messageTurns`, or an event that is kept with the turn before it
--- (`metadata.after`; before the first turn, `metadata.opening`). So the whole session follows from its turns:
--- `session.replay` rebuilds it.

local json = require("@nietz/json")

local session = {}

--- The version of what is ours in a session, under the key `nietz`.
session.VERSION = 1

export type Participant = {
	participantId: string,
	type: string,
	name: string,
	role: string?,
	isPrimaryUser: boolean?,
	isRelevantForRequest: boolean?,
}
--- Values by name: of an event, of what models write, of a prompt.
export type Values = { [string]: any }
--- A look of a persona's into the project before it answered; which model made something, how long that took, and where it looked.
export type Look = { tool: string, asked: Values, lines: number? }
export type Made = { model: string?, latencySeconds: number?, looked: { Look }? }
--- An option, and the name by which it is told later; `from` are those that it amends or merges, `by` who proposed it, `into` the
--- one that it became part of when both were found to be one.
export type Option = { id: string, text: string, name: string?, from: { string }?, by: { string }?, gone: boolean?, into: string? }
--- How a turn takes up a point that somebody made.
export type Response = { how: string, name: string, turnId: string, point: string, to: string, id: string, why: string }
--- What turns say of themselves. Which of it they have depends on their type.
export type TurnMetadata = {
	status: string,
	length: number,
	model: string?,
	latencySeconds: number?,
	looked: { Look }?,
	cites: { string }?,
	stance: string,
	confidence: number,
	recommends: string,
	responds: { Response },
	proposed: { Option }?,
	questionId: string,
	sequenceInRound: number,
	targetAmbiguity: string,
	why: string?,
	suggestedDefault: string?,
	revisit: boolean?,
	answerId: string,
	questionStatus: string,
	skipCommand: boolean,
	answerConfidence: string?,
	assumptionId: string,
	rationale: string,
	final: boolean?,
	dissents: boolean?,
	opening: { Event }?,
	after: { Event }?,
}
export type Turn = {
	turnId: string,
	sessionId: string,
	sender: Participant,
	recipient: Participant?,
	messageType: string,
	content: string,
	timestamp: string,
	sequenceNumber: number,
	relatedCycleOrRound: { cycleType: string, number: number },
	metadata: TurnMetadata,
}
export type Answer = { answerId: string, answer: string, skipCommand: boolean, confidence: string?, createdAt: string }
export type Question = {
	questionId: string,
	roundNumber: number,
	sequenceInRound: number,
	question: string,
	targetAmbiguity: string,
	why: string?,
	suggestedDefault: string?,
	status: string,
	userAnswer: Answer,
	answeredAt: string?,
}
export type Assumption = { assumptionId: string, relatedQuestion: string, assumption: string, rationale: string, addedAt: string }
export type Cycle = {
	cycleNumber: number,
	participatingPersonas: { Participant },
	topic: string,
	messageTurns: { string },
	resolutionSummary: string?,
	exchangeEnds: string?,
	status: string,
}
export type From = { name: string, turnId: string }
--- A line of the answer: who said what it rests on, in which turns; `facts` are what the user said, `cites` lines of files.
export type Point = {
	text: string,
	from: { From },
	facts: { number }?,
	cites: { string }?,
	--- Of what was rejected: the option.
	option: string?,
	--- Of a row of the table at the top, and of what was disputed: what it is about, in a few words.
	label: string?,
	--- Of a minority report: what would convince its author.
	convince: string?,
	made: Made?,
}
--- What the user said that holds; older sessions have their words as `quote`, where `text` is not those.
export type Fact = { text: string, quote: string? }
--- A hole that somebody found in the answer, and what came of it: `mended`, `open` (it stands among what is open) or `refused`, and why.
export type Hole = { name: string, text: string, how: string, why: string? }
--- A section of an answer of before 2026-11-27, in Markdown, and what a statement rests on, with the heading that it stands below.
export type Section = { name: string, text: string }
export type Rest = { section: string, text: string, from: { From }, facts: { number }?, cites: { string }? }
--- A figure of the answer that nobody said, and the statement that has it; what the user said that the answer does not tell, why, and
--- whether its first reader missed it.
export type Figure = { figure: string, how: string }
export type LeftOut = { text: string, why: string, missed: boolean? }
export type Carried = { by: number, of: number, confidence: number, percent: number }
export type Decision = {
	option: string,
	decision: Point,
	composed: boolean?,
	--- Of a large mind: the memo as it is read, what its best opponent would say, and what of it rests on what.
	title: string?,
	memo: string?,
	against: string?,
	sections: { Section }?,
	rests: { Rest }?,
	figures: { Figure }?,
	leftOut: { LeftOut }?,
	--- The table at the top, what would sink it, and where the person who asked stands.
	glance: { Point }?,
	sinks: { Point }?,
	context: { Point }?,
	known: { Fact }?,
	reasons: { Point }?,
	tradeoffs: { Point }?,
	risks: { Point }?,
	assumptions: { Point }?,
	rejected: { Point }?,
	--- What the debate turned on: who held what, and why it matters.
	disputed: { Point }?,
	open: { Point }?,
	nextSteps: { Point }?,
	minorityReports: { Point }?,
	carriedAllTheSame: { Point }?,
	confidence: number?,
	carried: Carried?,
	--- What reviewers found.
	holes: { Hole }?,
	made: Made?,
}
--- Who stands where after a cycle.
export type Position = { name: string, option: string, confidence: number }
export type Measure = {
	cycle: number,
	--- By option: percent of all confidence.
	support: { [string]: number },
	--- The option with the most support; nil where two have the same, or nobody chose.
	leading: string?,
	positions: { Position },
	--- Who changed their option, and the average change of confidence.
	moved: { { name: string, from: string, to: string } },
	drift: number,
	said: number,
	new: number,
}
export type Failed = { code: string, who: string, at: string }
export type Metadata = {
	correlationId: string?,
	featureFlags: { string }?,
	debateCycleLimit: number?,
	topic: string,
	options: { Option },
	ambiguity: { { round: number, ambiguous: boolean, reasons: { string }, looked: { Look }? } }?,
	measures: { Measure },
	outcome: string,
	decision: Decision,
	control: Values?,
	timing: { [string]: string }?,
	errorCategories: { Failed }?,
	opening: { Event }?,
}
export type Said = { text: string, to: string?, after: number, at: string }
export type Own = {
	version: number,
	ledger: { last: number, entries: { Values } },
	files: { Values },
	said: { Said }?,
	takenBack: { { quote: string, by: string?, after: number } }?,
	former: { { at: string, after: number, decision: Decision? } }?,
}
export type Selection = {
	requestClassification: string,
	selectedPersonas: { Participant },
	reason: string,
	userOverride: boolean,
	overriddenPersonas: { string },
}
export type Session = {
	sessionId: string,
	userId: string,
	requestText: string,
	status: string,
	createdAt: string,
	updatedAt: string,
	clarificationRounds: number,
	debateCycles: number,
	extendedDebateRequested: boolean,
	assumptionLog: { Assumption },
	participants: { Participant },
	messageTurns: { Turn },
	finalAnswer: string?,
	metadata: Metadata,
	clarificationQuestions: { Question },
	councilDiscussions: { Cycle },
	personaSelection: Selection,
	nietz: Own,
}
--- Something that nobody said; its other fields depend on its kind.
export type Event = { kind: string, at: string, [string]: any }
--- A turn before it is in the session; `number` is its round or cycle.
export type NewTurn = {
	turnId: string,
	sender: Participant,
	recipient: Participant?,
	messageType: string,
	content: string,
	timestamp: string,
	number: number,
	metadata: Values?,
}

local function empty_list<T>(): { T }
	return json.array({} :: { T })
end

--- Returns a list with one more; a new list where there is none.
local function appended<T>(items: { T }?, item: T): { T }
	local all: { T } = items or empty_list()
	table.insert(all, item)
	return all
end

local function copy<T>(value: T): T
	if type(value) ~= "table" then
		return value
	end
	local old = value :: { [unknown]: unknown }
	local new: { [unknown]: unknown } = if #old > 0 or json.encode(old) == "[]" then json.array({}) else {}
	for key, item in old do
		new[key] = copy(item)
	end
	return new :: any
end

--- Returns the question with this id.
function session.question(self: Session, id: string): Question?
	for _, question in self.clarificationQuestions do
		if question.questionId == id then
			return question
		end
	end
	return nil
end

--- Returns the name of an option; its text, without its full stop, where it has none.
function session.name_of(option: Option): string
	return option.name or (string.gsub(option.text, "%.$", ""))
end

--- Returns the participant with this name.
function session.participant(self: Session, name: string): Participant?
	for _, participant in self.participants do
		if participant.name == name then
			return participant
		end
	end
	return nil
end

--- Returns the participant who is the user.
function session.user(self: Session): Participant
	for _, participant in self.participants do
		if participant.type == "user" then
			return participant
		end
	end
	error("a session has a user")
end

local function find_cycle(self: Session, number: number): Cycle
	for _, discussion in self.councilDiscussions do
		if discussion.cycleNumber == number then
			return discussion
		end
	end
	return error(`there is no cycle {number}`)
end

local function new_document(event: Event): Session
	return {
		sessionId = event.sessionId,
		userId = event.userId,
		requestText = event.requestText,
		status = "created",
		createdAt = event.at,
		updatedAt = event.at,
		clarificationRounds = 0,
		debateCycles = 0,
		extendedDebateRequested = event.extended,
		assumptionLog = empty_list(),
		participants = copy(event.participants),
		messageTurns = empty_list(),
		finalAnswer = json.null,
		metadata = copy(event.metadata),
		clarificationQuestions = empty_list(),
		councilDiscussions = empty_list(),
		personaSelection = json.null,
		nietz = {
			version = session.VERSION,
			ledger = { last = 0, entries = empty_list() },
			files = copy(event.files or empty_list()),
		},
	}
end

--- By kind of event: how it changes the session.
local EVENTS: { [string]: (self: Session, event: Event) -> () } = {
	status = function(self: Session, event: Event)
		self.status = event.status
		-- When it first came to each status.
		local timing: { [string]: string } = self.metadata.timing or {}
		self.metadata.timing = timing
		timing[event.status] = timing[event.status] or event.at
	end,
	judged = function(self: Session, event: Event)
		self.metadata.ambiguity = appended(self.metadata.ambiguity, {
			round = event.round,
			ambiguous = event.ambiguous,
			reasons = copy(event.reasons),
			looked = copy(event.looked),
		})
	end,
	round_over = function(self: Session, event: Event)
		self.clarificationRounds = math.max(self.clarificationRounds, event.round)
	end,
	selected = function(self: Session, event: Event)
		for _, participant in event.selection.selectedPersonas do
			table.insert(self.participants, copy(participant))
		end
		self.personaSelection = copy(event.selection)
		self.metadata.topic = event.topic
		self.metadata.options = copy(event.options)
	end,
	cycle = function(self: Session, event: Event)
		table.insert(self.councilDiscussions, {
			discussionId = event.discussionId,
			sessionId = self.sessionId,
			cycleNumber = event.number,
			participatingPersonas = copy(self.personaSelection.selectedPersonas),
			exchangeStarts = event.at,
			topic = event.topic,
			messageTurns = empty_list(),
			status = "in_progress",
		})
	end,
	cycle_over = function(self: Session, event: Event)
		local discussion = find_cycle(self, event.number)
		discussion.status = event.status
		discussion.resolutionSummary = event.resolution
		discussion.exchangeEnds = event.at
		self.debateCycles = event.number
		self.metadata.measures = appended(self.metadata.measures, copy(event.measures))
	end,
	extended = function(self: Session, event: Event)
		self.extendedDebateRequested = true
		self.metadata.debateCycleLimit = event.limit
	end,
	-- What the user says in the debate is no turn by the specification: it has its place here. `to` is who was asked.
	said = function(self: Session, event: Event)
		self.nietz.said = appended(self.nietz.said, { text = event.text, to = event.to, after = #self.messageTurns, at = event.at })
	end,
	noted = function(self: Session, event: Event)
		table.insert(self.nietz.ledger.entries, copy(event.entry))
		self.nietz.ledger.last = event.entry.id
	end,
	-- Words of the user that hold no longer: struck by them, or by later words of theirs (`by`).
	taken_back = function(self: Session, event: Event)
		self.nietz.takenBack = appended(self.nietz.takenBack, { quote = event.quote, by = event.by, after = #self.messageTurns })
	end,
	options = function(self: Session, event: Event)
		for _, option in event.options do
			table.insert(self.metadata.options, copy(option))
		end
	end,
	gone = function(self: Session, event: Event)
		for _, id in event.options do
			for _, option in self.metadata.options do
				option.gone = if option.id == id then true else option.gone
			end
		end
	end,
	-- Options that nobody tells apart by what is done are one: those who stood for any of them stand for `into`.
	merged = function(self: Session, event: Event)
		for _, option in self.metadata.options do
			if option.id == event.into then
				option.text, option.name = event.text, event.name
			elseif table.find(event.options, option.id) ~= nil then
				option.gone, option.into = true, event.into
			end
		end
	end,
	called_in = function(self: Session, event: Event)
		table.insert(self.participants, copy(event.participant))
	end,
	-- The answer is made anew: what was concluded before is kept.
	reopened = function(self: Session, event: Event)
		self.nietz.former = appended(self.nietz.former, { at = event.at, after = #self.messageTurns, decision = self.metadata.decision })
		self.metadata.decision = nil :: never
	end,
	outcome = function(self: Session, event: Event)
		self.metadata.outcome = event.outcome
	end,
	proposed = function(self: Session, event: Event)
		self.metadata.decision = copy(event.decision)
	end,
	control = function(self: Session, event: Event)
		self.metadata.control = copy(event.report)
	end,
	failure = function(self: Session, event: Event)
		self.metadata.errorCategories = appended(self.metadata.errorCategories, { code = event.code, who = event.who, at = event.at })
	end,
}

local function apply_event(self: Session, event: Event)
	EVENTS[event.kind](self, event)
	self.updatedAt = event.at
end

--- By type of turn: how it changes the session besides being added.
local TURNS: { [string]: (self: Session, turn: Turn) -> () } = {
	question = function(self: Session, turn: Turn)
		local before = session.question(self, turn.metadata.questionId)
		if before ~= nil then
			-- The user wants it asked again: the assumption in its place no longer holds.
			before.status, before.userAnswer, before.answeredAt = "pending", nil :: never, nil
			local kept = empty_list()
			for _, assumption in self.assumptionLog do
				if assumption.relatedQuestion ~= before.questionId then
					table.insert(kept, assumption)
				end
			end
			self.assumptionLog = kept
			return
		end
		table.insert(
			self.clarificationQuestions,
			{
				questionId = turn.metadata.questionId,
				sessionId = self.sessionId,
				roundNumber = turn.relatedCycleOrRound.number,
				sequenceInRound = turn.metadata.sequenceInRound,
				question = turn.content,
				targetAmbiguity = turn.metadata.targetAmbiguity,
				why = turn.metadata.why,
				suggestedDefault = turn.metadata.suggestedDefault,
				askedBy = copy(turn.sender),
				status = "pending",
				createdAt = turn.timestamp,
			} :: any
		)
	end,
	answer = function(self: Session, turn: Turn)
		local question = session.question(self, turn.metadata.questionId) :: Question
		question.status = turn.metadata.questionStatus
		question.answeredAt = turn.timestamp
		question.userAnswer = {
			answerId = turn.metadata.answerId,
			questionId = question.questionId,
			sessionId = self.sessionId,
			answer = turn.content,
			skipCommand = turn.metadata.skipCommand,
			confidence = turn.metadata.answerConfidence,
			createdAt = turn.timestamp,
		}
	end,
	assumption_statement = function(self: Session, turn: Turn)
		table.insert(self.assumptionLog, {
			assumptionId = turn.metadata.assumptionId,
			sessionId = self.sessionId,
			relatedQuestion = turn.metadata.questionId,
			assumption = turn.content,
			rationale = turn.metadata.rationale,
			addedAt = turn.timestamp,
		})
	end,
	discussion = function(self: Session, turn: Turn)
		table.insert(find_cycle(self, turn.relatedCycleOrRound.number).messageTurns, turn.turnId)
	end,
	conclusion = function(self: Session, turn: Turn)
		if turn.metadata.final then
			self.finalAnswer = turn.content
		end
	end,
}

local CLARIFYING: { [string]: boolean } = { question = true, answer = true, assumption_statement = true }

local function apply_turn(self: Session, turn: Turn)
	table.insert(self.messageTurns, turn)
	TURNS[turn.messageType](self, turn)
	self.updatedAt = turn.timestamp
end

--- Returns a new session in which nobody has said anything.
function session.new(opening: Event): Session
	local self = new_document(opening)
	self.metadata.opening = json.array({ copy(opening) })
	return self
end

--- Applies an event, such as a change of status, and keeps it with the last turn.
function session.add_event(self: Session, event: Event)
	apply_event(self, event)
	local last = self.messageTurns[#self.messageTurns]
	if last == nil then
		self.metadata.opening = appended(self.metadata.opening, copy(event))
		return
	end
	last.metadata.after = appended(last.metadata.after, copy(event))
end

--- Adds a turn at the end of the session, and returns it.
function session.add_turn(self: Session, said: NewTurn): Turn
	local metadata: Values = copy(said.metadata or {})
	metadata.status = self.status
	metadata.length = #said.content
	if #self.messageTurns == 0 then
		metadata.opening = self.metadata.opening
		self.metadata.opening = nil
	end
	local turn: Turn = {
		turnId = said.turnId,
		sessionId = self.sessionId,
		sender = copy(said.sender),
		recipient = copy(said.recipient),
		messageType = said.messageType,
		content = said.content,
		timestamp = said.timestamp,
		sequenceNumber = #self.messageTurns + 1,
		relatedCycleOrRound = {
			cycleType = if CLARIFYING[said.messageType] then "clarification" else "debate",
			number = said.number,
		},
		metadata = metadata :: any,
	}
	apply_turn(self, turn)
	return turn
end

--- Returns the session that follows from these turns; nil where there is none.
function session.replay(turns: { Turn }): Session?
	local self: Session? = nil
	for _, said in turns do
		local turn = copy(said)
		for _, event in turn.metadata.opening or {} :: { Event } do
			if event.kind == "begun" then
				self = new_document(event)
			else
				apply_event(self :: Session, event)
			end
		end
		apply_turn(self :: Session, turn)
		for _, event in turn.metadata.after or {} :: { Event } do
			apply_event(self :: Session, event)
		end
	end
	return self
end

return session
