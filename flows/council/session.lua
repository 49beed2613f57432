--!strict
--- A council session as data: what happens to it, one turn or event after the other. Pure: ids and times come in.
---
--- Everything that changes a session is a turn of its `messageTurns`, or an event that is kept with the turn before it
--- (`metadata.after`; before the first turn, `metadata.opening`). So the turns alone tell the whole session again: that
--- is `session.replay`.

local json = require("@nietz/json")

local session = {}

export type Participant = { participantId: string, type: string, name: string, role: string? }
export type Session = { [string]: any }
export type Event = { kind: string, at: string, [string]: any }
--- A turn before it has its place: `number` is the round or the cycle.
export type Said = {
	turnId: string,
	sender: Participant,
	recipient: Participant?,
	messageType: string,
	content: string,
	timestamp: string,
	number: number,
	metadata: { [string]: any }?,
}

local function list(): { any }
	return json.array({})
end

local function copy(value: any): any
	if type(value) ~= "table" then
		return value
	end
	local new: { [any]: any } = if #value > 0 or json.encode(value) == "[]" then json.array({}) else {}
	for key, item in value do
		new[key] = copy(item)
	end
	return new
end

--- Returns the question with this id.
function session.question(self: Session, id: string): any
	for _, question in self.clarificationQuestions do
		if question.questionId == id then
			return question
		end
	end
	return nil
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

--- Returns the one who asked for the council.
function session.user(self: Session): Participant
	for _, participant in self.participants do
		if participant.type == "user" then
			return participant
		end
	end
	error("a session has a user")
end

local function cycle(self: Session, number: number): any
	for _, discussion in self.councilDiscussions do
		if discussion.cycleNumber == number then
			return discussion
		end
	end
	return nil
end

local function begun(event: Event): Session
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
		assumptionLog = list(),
		participants = copy(event.participants),
		messageTurns = list(),
		finalAnswer = json.null,
		metadata = copy(event.metadata),
		clarificationQuestions = list(),
		councilDiscussions = list(),
		personaSelection = json.null,
	}
end

--- By kind: what an event does.
local EVENTS: { [string]: (self: Session, event: Event) -> () } = {
	status = function(self: Session, event: Event)
		self.status = event.status
	end,
	judged = function(self: Session, event: Event)
		self.metadata.ambiguity = self.metadata.ambiguity or list()
		table.insert(self.metadata.ambiguity, { round = event.round, ambiguous = event.ambiguous, reasons = copy(event.reasons) })
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
			messageTurns = list(),
			status = "in_progress",
		})
	end,
	cycle_over = function(self: Session, event: Event)
		local discussion = cycle(self, event.number)
		discussion.status = event.status
		discussion.resolutionSummary = event.resolution
		discussion.exchangeEnds = event.at
		self.debateCycles = event.number
		self.metadata.measures = self.metadata.measures or list()
		table.insert(self.metadata.measures, copy(event.measures))
	end,
	extended = function(self: Session, event: Event)
		self.extendedDebateRequested = true
		self.metadata.debateCycleLimit = event.limit
	end,
	remark = function(self: Session, event: Event)
		self.metadata.remarks = self.metadata.remarks or list()
		table.insert(self.metadata.remarks, { text = event.text, after = #self.messageTurns, at = event.at })
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
		self.metadata.errorCategories = self.metadata.errorCategories or list()
		table.insert(self.metadata.errorCategories, { code = event.code, who = event.who, at = event.at })
	end,
}

local function happen(self: Session, event: Event)
	EVENTS[event.kind](self, event)
	self.updatedAt = event.at
end

--- By type: what a turn does, besides being said.
local TURNS: { [string]: (self: Session, turn: any) -> () } = {
	question = function(self: Session, turn: any)
		local before = session.question(self, turn.metadata.questionId)
		if before ~= nil then
			-- Asked again, because the user wants to: what was assumed instead is assumed no more.
			before.status, before.userAnswer, before.answeredAt = "pending", nil, nil
			local kept = list()
			for _, assumption in self.assumptionLog do
				if assumption.relatedQuestion ~= before.questionId then
					table.insert(kept, assumption)
				end
			end
			self.assumptionLog = kept
			return
		end
		table.insert(self.clarificationQuestions, {
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
		})
	end,
	answer = function(self: Session, turn: any)
		local question = session.question(self, turn.metadata.questionId)
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
	assumption_statement = function(self: Session, turn: any)
		table.insert(self.assumptionLog, {
			assumptionId = turn.metadata.assumptionId,
			sessionId = self.sessionId,
			relatedQuestion = turn.metadata.questionId,
			assumption = turn.content,
			rationale = turn.metadata.rationale,
			addedAt = turn.timestamp,
		})
	end,
	discussion = function(self: Session, turn: any)
		table.insert(cycle(self, turn.relatedCycleOrRound.number).messageTurns, turn.turnId)
	end,
	conclusion = function(self: Session, turn: any)
		if turn.metadata.final then
			self.finalAnswer = turn.content
		end
	end,
}

local CLARIFYING: { [string]: boolean } = { question = true, answer = true, assumption_statement = true }

local function take(self: Session, turn: any)
	table.insert(self.messageTurns, turn)
	TURNS[turn.messageType](self, turn)
	self.updatedAt = turn.timestamp
end

--- Returns a new session in which nobody has said anything.
function session.new(opening: Event): Session
	local self = begun(opening)
	self.metadata.opening = json.array({ copy(opening) })
	return self
end

--- Lets something happen that nobody says, such as a change of status.
function session.record(self: Session, event: Event)
	happen(self, event)
	local last = self.messageTurns[#self.messageTurns]
	if last == nil then
		table.insert(self.metadata.opening, copy(event))
		return
	end
	last.metadata.after = last.metadata.after or list()
	table.insert(last.metadata.after, copy(event))
end

--- Adds what somebody says, with its place in the session, and returns the turn.
function session.say(self: Session, said: Said): any
	local metadata = copy(said.metadata or {})
	metadata.status = self.status
	metadata.length = #said.content
	if #self.messageTurns == 0 then
		metadata.opening = self.metadata.opening
		self.metadata.opening = nil
	end
	local turn = {
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
		metadata = metadata,
	}
	take(self, turn)
	return turn
end

--- Returns the session that these turns tell, or nil where there is no turn to tell it.
function session.replay(turns: { any }): Session?
	local self: Session? = nil
	for _, said in turns do
		local turn = copy(said)
		for _, event in turn.metadata.opening or {} do
			if event.kind == "begun" then
				self = begun(event)
			else
				happen(self :: Session, event)
			end
		end
		take(self :: Session, turn)
		for _, event in turn.metadata.after or {} do
			happen(self :: Session, event)
		end
	end
	return self
end

return session
