--!strict
--- What a JSON Schema cannot say about a session: every rule of the specification that looks at two places at once.
--- Pure. The flow saves by them, and `nietz check` judges files by them.

local list = require("../common/list")
local members = require("./members")
local text = require("@nietz/text")

local rules = {}

export type Fault = { pointer: string, message: string, severity: string? }

--- Rounds of clarification, whatever anybody sets.
rules.ROUNDS = 3
--- Cycles of a debate, and of an extended one where the configuration does not say.
rules.CYCLES = 10
rules.EXTENDED = 20

--- The state of one check: the document, what was found, and what is looked up often.
type Check = { doc: any, faults: { Fault }, participants: { [string]: any }, turns: { [string]: any } }

local function fault(self: Check, pointer: string, message: string)
	table.insert(self.faults, { pointer = pointer, message = message })
end

local function note(self: Check, pointer: string, message: string)
	table.insert(self.faults, { pointer = pointer, message = message, severity = "note" })
end

--- Returns the most cycles that a session may have.
function rules.limit(doc: any): number
	local most = if doc.extendedDebateRequested then rules.EXTENDED else rules.CYCLES
	local set = doc.metadata.debateCycleLimit
	if type(set) ~= "number" then
		return most
	end
	-- Only a debate that was asked to be longer may be longer.
	return if doc.extendedDebateRequested then set else math.min(set, most)
end

--- Whether a line means that its question is left out, for now (`defer`) or at all.
function rules.is_skip(line: string): boolean
	local folded = text.trim(text.fold(line))
	return list.some({ "skip", "defer", "skip question", "defer question", "skip all", "proceed with defaults" }, function(word): boolean
		return folded == word
	end)
end

local function unique(self: Check, list: { any }, field: string, pointer: string)
	local seen: { [string]: boolean } = {}
	for index, item in list do
		if seen[item[field]] then
			fault(self, `{pointer}/{index - 1}/{field}`, `repeats the {field} {item[field]}`)
		end
		seen[item[field]] = true
	end
end

--- A participant that stands somewhere must be one of the session's.
local function known(self: Check, pointer: string, participant: any, as: string?)
	local own = self.participants[participant.participantId]
	if own == nil then
		fault(self, pointer, `is no participant of this session: "{participant.name}"`)
	elseif own.name ~= participant.name or own.type ~= participant.type then
		fault(self, pointer, `is called "{own.name}" ({own.type}) among the participants`)
	elseif as ~= nil and participant.type ~= as then
		fault(self, pointer, `must be a {as}, and "{participant.name}" is a {participant.type}`)
	end
end

local function own_session(self: Check, pointer: string, item: any)
	if item.sessionId ~= self.doc.sessionId then
		fault(self, `{pointer}/sessionId`, "is not the id of this session")
	end
end

local function persona_name(self: Check, pointer: string, name: string)
	if members.find(name) == nil then
		local near = members.nearest(name)
		fault(self, pointer, `no council persona is called "{name}"` .. (if near then `; did you mean "{near}"?` else ""))
	end
end

local function participants(self: Check)
	local users, personas = 0, 0
	for index, participant in self.doc.participants do
		local pointer = `/participants/{index - 1}`
		if participant.isPrimaryUser ~= nil and participant.isPrimaryUser ~= (participant.type == "user") then
			fault(self, `{pointer}/isPrimaryUser`, `must be {participant.type == "user"}: it follows from the type`)
		end
		if participant.type == "user" then
			users += 1
			if users > 1 then
				fault(self, pointer, "is a second user; a session has one")
			end
		else
			personas += 1
			persona_name(self, `{pointer}/name`, participant.name)
		end
	end
	if personas == 0 then
		fault(self, "/participants", "has no persona; a council has at least one")
	end
	unique(self, self.doc.participants, "participantId", "/participants")
end

--- What the status was when a turn was said: as it is written, or as its type of exchange implies.
local function status_of(turn: any): string
	local written = if turn.metadata then turn.metadata.status else nil
	return written or (if turn.relatedCycleOrRound.cycleType == "clarification" then "clarifying" else "debating")
end

--- By type: what a turn needs of the session at that moment.
local ALIGNED: { [string]: (self: Check, pointer: string, turn: any) -> () } = {
	question = function(self: Check, pointer: string, turn: any)
		if status_of(turn) ~= "clarifying" then
			fault(self, pointer, `a question is asked while the status is clarifying, not {status_of(turn)}`)
		end
	end,
	answer = function(self: Check, pointer: string, turn: any)
		if status_of(turn) ~= "clarifying" then
			fault(self, pointer, `an answer is given while the status is clarifying, not {status_of(turn)}`)
		end
		if turn.sender.type ~= "user" then
			fault(self, `{pointer}/sender`, "an answer comes from the user")
		end
	end,
	discussion = function(self: Check, pointer: string, turn: any)
		if status_of(turn) ~= "debating" then
			fault(self, pointer, `a discussion takes place while the status is debating, not {status_of(turn)}`)
		end
		if turn.sender.type ~= "persona" then
			fault(self, `{pointer}/sender`, "only a persona takes part in the discussion")
		end
	end,
	conclusion = function(_self: Check, _pointer: string, _turn: any) end,
	assumption_statement = function(self: Check, pointer: string, _turn: any)
		for _, question in self.doc.clarificationQuestions or {} do
			if question.status == "skipped" or question.status == "deferred" then
				return
			end
		end
		for _, turn in self.doc.messageTurns do
			if turn.messageType == "answer" and (rules.is_skip(turn.content) or (turn.metadata or {}).skipCommand) then
				return
			end
		end
		fault(self, pointer, "states an assumption, and no question was skipped")
	end,
}

local function turns(self: Check)
	local limit = rules.limit(self.doc)
	local before, concluded, finals = 0, 0, 0
	for index, turn in self.doc.messageTurns do
		local pointer = `/messageTurns/{index - 1}`
		own_session(self, pointer, turn)
		known(self, `{pointer}/sender`, turn.sender)
		if turn.recipient ~= nil then
			known(self, `{pointer}/recipient`, turn.recipient)
		end
		local number = turn.sequenceNumber
		if number <= before then
			fault(self, `{pointer}/sequenceNumber`, `must be more than {before}, the one before it`)
		elseif before == 0 and number > 1 then
			fault(self, `{pointer}/sequenceNumber`, "the first is 1")
		end
		before = math.max(before, number)
		ALIGNED[turn.messageType](self, pointer, turn)
		if status_of(turn) == "final" then
			finals += 1
			if finals > 1 then
				fault(self, pointer, "is a second turn with the status final")
			end
		end
		if turn.messageType == "conclusion" then
			concluded = index
		elseif turn.messageType == "discussion" then
			local cycle = turn.relatedCycleOrRound.number
			if concluded > 0 then
				fault(self, pointer, "is a discussion after a conclusion; conclusions come when the debate is over")
			end
			if cycle > limit then
				fault(self, pointer, `is a discussion in cycle {cycle}, beyond the limit of {limit}`)
			end
		end
	end
	unique(self, self.doc.messageTurns, "turnId", "/messageTurns")
end

--- Whether a turn belongs to this question: by its id where it says one, else any of that round may.
local function belongs(turn: any, question: any): boolean
	local id = if turn.metadata then turn.metadata.questionId else nil
	return if id then id == question.questionId else turn.relatedCycleOrRound.number == question.roundNumber
end

--- Questions and answers take turns, and none comes after the last round is over, but to what the user reopens.
local function exchange(self: Check)
	local left: number? = nil
	for _, question in self.doc.clarificationQuestions or {} do
		if question.roundNumber == rules.ROUNDS then
			left = (left or 0) + 1
		end
	end
	local open: any = nil
	for index, turn in self.doc.messageTurns do
		local pointer = `/messageTurns/{index - 1}`
		local number = turn.relatedCycleOrRound.number
		if turn.messageType == "question" then
			if open ~= nil then
				fault(self, pointer, "is asked while another question waits for its answer: one at a time")
			end
			open = turn
		elseif turn.messageType == "answer" then
			local revisited = open ~= nil and (open.metadata or {}).revisit == true
			if open == nil then
				fault(self, pointer, "answers before anything was asked")
			elseif (open.metadata or {}).questionId ~= (turn.metadata or {}).questionId then
				fault(self, `{pointer}/metadata/questionId`, "answers another question than the one that was asked")
			elseif number > rules.ROUNDS or (left ~= nil and left <= 0 and not revisited) then
				fault(self, pointer, `is an answer after round {rules.ROUNDS}, the last, was over`)
			end
			if left ~= nil and number == rules.ROUNDS and not revisited then
				left -= 1
			end
			open = nil
		end
	end
end

local function questions(self: Check)
	local pending, round, place = 0, 0, 0
	for index, question in self.doc.clarificationQuestions or {} do
		local pointer = `/clarificationQuestions/{index - 1}`
		own_session(self, pointer, question)
		known(self, `{pointer}/askedBy`, question.askedBy)
		local later = question.roundNumber > round or (question.roundNumber == round and question.sequenceInRound > place)
		if not later then
			fault(self, `{pointer}/sequenceInRound`, `comes after round {round}, question {place}: the order is by round, then by place`)
		end
		round, place = question.roundNumber, question.sequenceInRound
		local answer = question.userAnswer
		if question.status == "pending" then
			pending += 1
			if pending > 1 then
				fault(self, `{pointer}/status`, "is a second question that waits; one is asked at a time")
			end
		elseif answer == nil then
			fault(self, `{pointer}/status`, `is {question.status} without a userAnswer`)
		end
		if answer ~= nil then
			own_session(self, `{pointer}/userAnswer`, answer)
			if answer.questionId ~= question.questionId then
				fault(self, `{pointer}/userAnswer/questionId`, "is not the id of this question")
			end
			if answer.skipCommand and not rules.is_skip(answer.answer) then
				note(self, `{pointer}/userAnswer/answer`, "skips the question without saying so")
			end
		end
		local asked = #self.doc.messageTurns == 0
		for _, turn in self.doc.messageTurns do
			asked = asked or (turn.messageType == "question" and belongs(turn, question))
		end
		if not asked then
			fault(self, pointer, "was never asked: no turn of type question belongs to it")
		end
	end
	unique(self, self.doc.clarificationQuestions or {}, "questionId", "/clarificationQuestions")
end

local function assumptions(self: Check)
	for index, assumption in self.doc.assumptionLog do
		local pointer = `/assumptionLog/{index - 1}`
		own_session(self, pointer, assumption)
		if assumption.relatedQuestion ~= nil then
			local found: any = nil
			for _, question in self.doc.clarificationQuestions or {} do
				found = if question.questionId == assumption.relatedQuestion then question else found
			end
			if found == nil then
				fault(self, `{pointer}/relatedQuestion`, "is the id of no question of this session")
			elseif found.status == "answered" then
				fault(self, `{pointer}/relatedQuestion`, "was answered: nothing has to be assumed in its place")
			end
		end
	end
	unique(self, self.doc.assumptionLog, "assumptionId", "/assumptionLog")
end

local function discussions(self: Check)
	local limit = rules.limit(self.doc)
	local before, over = 0, 0
	for index, discussion in self.doc.councilDiscussions or {} do
		local pointer = `/councilDiscussions/{index - 1}`
		own_session(self, pointer, discussion)
		local number = discussion.cycleNumber
		if number <= before then
			fault(self, `{pointer}/cycleNumber`, `must be more than {before}, the one before it`)
		end
		before = math.max(before, number)
		if number > limit then
			fault(self, `{pointer}/cycleNumber`, `is beyond the limit of {limit} cycles`)
		end
		over += if discussion.status == "in_progress" then 0 else 1
		if discussion.status == "concluded" then
			if discussion.resolutionSummary == nil then
				fault(self, `{pointer}/status`, "is concluded without a resolutionSummary")
			end
			if number == limit then
				fault(self, `{pointer}/status`, `must be limit_reached: {limit} is the last cycle`)
			end
		end
		if #discussion.participatingPersonas < 2 then
			fault(self, `{pointer}/participatingPersonas`, "needs two personas: one alone discusses nothing")
		end
		for place, participant in discussion.participatingPersonas do
			known(self, `{pointer}/participatingPersonas/{place - 1}`, participant, "persona")
		end
		for place, id in discussion.messageTurns do
			local turn = self.turns[id]
			local here = `{pointer}/messageTurns/{place - 1}`
			if turn == nil then
				fault(self, here, "is the id of no turn of this session")
			elseif turn.messageType ~= "discussion" then
				fault(self, here, `is a turn of type {turn.messageType}, not discussion`)
			elseif turn.relatedCycleOrRound.number ~= number then
				fault(self, here, `belongs to cycle {turn.relatedCycleOrRound.number}`)
			end
		end
	end
	if over ~= self.doc.debateCycles and self.doc.debateCycles <= limit and self.doc.councilDiscussions ~= nil then
		note(self, "/debateCycles", `counts {self.doc.debateCycles}, and {over} are over`)
	end
	unique(self, self.doc.councilDiscussions or {}, "discussionId", "/councilDiscussions")
end

local function selection(self: Check)
	local chosen = self.doc.personaSelection
	if type(chosen) ~= "table" then
		return
	end
	own_session(self, "/personaSelection", chosen)
	for index, participant in chosen.selectedPersonas do
		known(self, `/personaSelection/selectedPersonas/{index - 1}`, participant, "persona")
	end
	if chosen.userOverride and #(chosen.overriddenPersonas or {}) == 0 then
		fault(self, "/personaSelection/overriddenPersonas", "is empty, and userOverride says that personas were named")
	end
	for index, name in chosen.overriddenPersonas or {} do
		persona_name(self, `/personaSelection/overriddenPersonas/{index - 1}`, name)
	end
end

--- What may be open in which status, and what must be there at the end.
local function standing(self: Check)
	local doc = self.doc
	local status = doc.status
	if doc.debateCycles > rules.limit(doc) then
		fault(self, "/debateCycles", `is beyond the limit of {rules.limit(doc)} cycles`)
	end
	if status ~= "clarifying" and status ~= "cancelled" then
		for index, question in doc.clarificationQuestions or {} do
			if question.status == "pending" then
				fault(self, `/clarificationQuestions/{index - 1}/status`, `is pending while the session is {status}`)
			end
		end
	end
	if status ~= "debating" and status ~= "cancelled" then
		for index, discussion in doc.councilDiscussions or {} do
			if discussion.status == "in_progress" then
				fault(self, `/councilDiscussions/{index - 1}/status`, `is in_progress while the session is {status}`)
			end
		end
	end
	if status == "completed" then
		if type(doc.finalAnswer) ~= "string" then
			fault(self, "/finalAnswer", "is missing, and the session is completed")
		end
		if #doc.messageTurns == 0 then
			fault(self, "/messageTurns", "is empty, and the session is completed")
		end
	elseif type(doc.finalAnswer) == "string" and status ~= "final" and status ~= "cancelled" then
		fault(self, "/finalAnswer", `is there already, and the session is {status}`)
	end
end

--- Each point of the answer comes from somebody who is here, in a turn of theirs.
local function attribution(self: Check)
	local decision = self.doc.metadata.decision
	if decision == nil then
		return
	end
	local function point(pointer: string, item: any)
		for index, from in item.from do
			local here = `{pointer}/from/{index - 1}`
			local turn = self.turns[from.turnId]
			if turn == nil then
				fault(self, `{here}/turnId`, "is the id of no turn of this session")
			elseif turn.sender.name ~= from.name then
				fault(self, `{here}/name`, `did not say that: the turn is by "{turn.sender.name}"`)
			end
		end
	end
	point("/metadata/decision/decision", decision.decision)
	for _, part in { "tradeoffs", "assumptions", "rejected", "nextSteps", "minorityReports" } do
		for index, item in decision[part] do
			point(`/metadata/decision/{part}/{index - 1}`, item)
		end
	end
end

--- Returns what is wrong with a session that its schema has accepted.
function rules.check(doc: any): { Fault }
	local self: Check = { doc = doc, faults = {}, participants = {}, turns = {} }
	for _, participant in doc.participants do
		self.participants[participant.participantId] = participant
	end
	for _, turn in doc.messageTurns do
		self.turns[turn.turnId] = turn
	end
	for _, part in { participants, turns, exchange, questions, assumptions, discussions, selection, standing, attribution } do
		part(self)
	end
	return self.faults
end

return rules
