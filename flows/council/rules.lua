--!strict
--- Rules of the specification for sessions that a JSON Schema cannot express, because they compare two places of the document.
--- Pure. Used when a session is saved, and by `nietz check`.

local list = require("../common/list")
local members = require("./members")
local session = require("./session")
local state_rules = require("./state_rules")
local text = require("@nietz/text")

local rules = {}

export type Fault = { pointer: string, message: string, severity: string? }

--- The most rounds of clarification; no option changes it.
rules.ROUNDS = 3
--- The most cycles of a debate; of an extended one, unless the configuration says otherwise.
rules.CYCLES = 10
rules.EXTENDED = 20

--- The state of one check: the document, what was found, and what is looked up often.
type Check = { doc: session.Values, faults: { Fault }, participants: { [string]: session.Values }, turns: { [string]: session.Values } }

local function add_fault(self: Check, pointer: string, message: string)
	table.insert(self.faults, { pointer = pointer, message = message })
end

local function add_remark(self: Check, pointer: string, message: string)
	table.insert(self.faults, { pointer = pointer, message = message, severity = "note" })
end

--- Returns the most cycles that a session may have.
function rules.cycle_limit(doc: session.Values): number
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

local function check_unique(self: Check, list: { session.Values }, field: string, pointer: string)
	local seen: { [string]: boolean } = {}
	for index, item in list do
		if seen[item[field]] then
			add_fault(self, `{pointer}/{index - 1}/{field}`, `repeats the {field} {item[field]}`)
		end
		seen[item[field]] = true
	end
end

--- A participant that is named anywhere must be one of the session's.
local function check_participant(self: Check, pointer: string, participant: session.Values, as: string?)
	local own = self.participants[participant.participantId]
	if own == nil then
		add_fault(self, pointer, `is no participant of this session: "{participant.name}"`)
	elseif own.name ~= participant.name or own.type ~= participant.type then
		add_fault(self, pointer, `is called "{own.name}" ({own.type}) among the participants`)
	elseif as ~= nil and participant.type ~= as then
		add_fault(self, pointer, `must be a {as}, and "{participant.name}" is a {participant.type}`)
	end
end

local function check_session_id(self: Check, pointer: string, item: session.Values)
	if item.sessionId ~= self.doc.sessionId then
		add_fault(self, `{pointer}/sessionId`, "is not the id of this session")
	end
end

local function check_persona_name(self: Check, pointer: string, name: string)
	if members.find(name) == nil then
		local near = members.nearest(name)
		add_fault(self, pointer, `no council persona is called "{name}"` .. (if near then `; did you mean "{near}"?` else ""))
	end
end

local function check_participants(self: Check)
	local users, personas = 0, 0
	for index, participant in self.doc.participants do
		local pointer = `/participants/{index - 1}`
		if participant.isPrimaryUser ~= nil and participant.isPrimaryUser ~= (participant.type == "user") then
			add_fault(self, `{pointer}/isPrimaryUser`, `must be {participant.type == "user"}: it follows from the type`)
		end
		if participant.type == "user" then
			users += 1
			if users > 1 then
				add_fault(self, pointer, "is a second user; a session has one")
			end
		else
			personas += 1
			check_persona_name(self, `{pointer}/name`, participant.name)
		end
	end
	if personas == 0 then
		add_fault(self, "/participants", "has no persona; a council has at least one")
	end
	check_unique(self, self.doc.participants, "participantId", "/participants")
end

--- By type of turn: checks what it requires of the session at that time.
local TURN_CHECKS: { [string]: (self: Check, pointer: string, turn: session.Values) -> () } = {
	question = function(_self: Check, _pointer: string, _turn: session.Values) end,
	answer = function(self: Check, pointer: string, turn: session.Values)
		if turn.sender.type ~= "user" then
			add_fault(self, `{pointer}/sender`, "an answer comes from the user")
		end
	end,
	discussion = function(self: Check, pointer: string, turn: session.Values)
		if turn.sender.type ~= "persona" then
			add_fault(self, `{pointer}/sender`, "only a persona takes part in the discussion")
		end
	end,
	conclusion = function(_self: Check, _pointer: string, _turn: session.Values) end,
	assumption_statement = function(self: Check, pointer: string, _turn: session.Values)
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
		add_fault(self, pointer, "states an assumption, and no question was skipped")
	end,
}

local function check_turns(self: Check)
	local limit = rules.cycle_limit(self.doc)
	local before, concluded = 0, 0
	for index, turn in self.doc.messageTurns do
		local pointer = `/messageTurns/{index - 1}`
		check_session_id(self, pointer, turn)
		check_participant(self, `{pointer}/sender`, turn.sender)
		if turn.recipient ~= nil then
			check_participant(self, `{pointer}/recipient`, turn.recipient)
		end
		local number = turn.sequenceNumber
		if number <= before then
			add_fault(self, `{pointer}/sequenceNumber`, `must be more than {before}, the one before it`)
		elseif before == 0 and number > 1 then
			add_fault(self, `{pointer}/sequenceNumber`, "the first is 1")
		end
		before = math.max(before, number)
		TURN_CHECKS[turn.messageType](self, pointer, turn)
		if turn.messageType == "conclusion" then
			concluded = index
		elseif turn.messageType == "discussion" then
			local cycle = turn.relatedCycleOrRound.number
			if concluded > 0 then
				add_fault(self, pointer, "is a discussion after a conclusion; conclusions come when the debate is over")
			end
			if cycle > limit then
				add_fault(self, pointer, `is a discussion in cycle {cycle}, beyond the limit of {limit}`)
			end
		end
	end
	check_unique(self, self.doc.messageTurns, "turnId", "/messageTurns")
end

--- Whether a turn belongs to this question: by the id that it names, else by its round.
local function belongs_to(turn: session.Values, question: session.Values): boolean
	local id = if turn.metadata then turn.metadata.questionId else nil
	return if id then id == question.questionId else turn.relatedCycleOrRound.number == question.roundNumber
end

--- Questions and answers alternate, and none comes after the last round, except for questions that are asked again.
local function check_exchange(self: Check)
	local left: number? = nil
	for _, question in self.doc.clarificationQuestions or {} do
		if question.roundNumber == rules.ROUNDS then
			left = (left or 0) + 1
		end
	end
	local open: session.Values? = nil
	-- By their words: the questions that were left out, and may be asked again.
	local left_out: { [string]: boolean } = {}
	for index, turn in self.doc.messageTurns do
		local pointer = `/messageTurns/{index - 1}`
		local number = turn.relatedCycleOrRound.number
		if turn.messageType == "question" then
			if open ~= nil then
				add_fault(self, pointer, "is asked while another question waits for its answer: one at a time")
			end
			open = turn
		elseif turn.messageType == "answer" then
			local asked = if open ~= nil then open.content else ""
			local revisited = left_out[asked] == true
			left_out[asked] = revisited or rules.is_skip(turn.content)
			if open == nil then
				add_fault(self, pointer, "answers before anything was asked")
			elseif (open.metadata or {}).questionId ~= (turn.metadata or {}).questionId then
				add_fault(self, `{pointer}/metadata/questionId`, "answers another question than the one that was asked")
			elseif number > rules.ROUNDS or (left ~= nil and left <= 0 and not revisited) then
				add_fault(self, pointer, `is an answer after round {rules.ROUNDS}, the last, was over`)
			end
			if left ~= nil and number == rules.ROUNDS and not revisited then
				left -= 1
			end
			open = nil
		end
	end
end

local function check_questions(self: Check)
	local pending, round, place = 0, 0, 0
	for index, question in self.doc.clarificationQuestions or {} do
		local pointer = `/clarificationQuestions/{index - 1}`
		check_session_id(self, pointer, question)
		check_participant(self, `{pointer}/askedBy`, question.askedBy)
		local later = question.roundNumber > round or (question.roundNumber == round and question.sequenceInRound > place)
		if not later then
			add_fault(
				self,
				`{pointer}/sequenceInRound`,
				`comes after round {round}, question {place}: the order is by round, then by place`
			)
		end
		round, place = question.roundNumber, question.sequenceInRound
		local answer = question.userAnswer
		if question.status == "pending" then
			pending += 1
			if pending > 1 then
				add_fault(self, `{pointer}/status`, "is a second question that waits; one is asked at a time")
			end
		elseif answer == nil then
			add_fault(self, `{pointer}/status`, `is {question.status} without a userAnswer`)
		end
		if answer ~= nil then
			check_session_id(self, `{pointer}/userAnswer`, answer)
			if answer.questionId ~= question.questionId then
				add_fault(self, `{pointer}/userAnswer/questionId`, "is not the id of this question")
			end
			if answer.skipCommand and not rules.is_skip(answer.answer) then
				add_remark(self, `{pointer}/userAnswer/answer`, "skips the question without saying so")
			end
		end
		local asked = #self.doc.messageTurns == 0
		for _, turn in self.doc.messageTurns do
			asked = asked or (turn.messageType == "question" and belongs_to(turn, question))
		end
		if not asked then
			add_fault(self, pointer, "was never asked: no turn of type question belongs to it")
		end
	end
	check_unique(self, self.doc.clarificationQuestions or {}, "questionId", "/clarificationQuestions")
end

local function check_assumptions(self: Check)
	for index, assumption in self.doc.assumptionLog do
		local pointer = `/assumptionLog/{index - 1}`
		check_session_id(self, pointer, assumption)
		if assumption.relatedQuestion ~= nil then
			local found: session.Values? = nil
			for _, question in self.doc.clarificationQuestions or {} do
				found = if question.questionId == assumption.relatedQuestion then question else found
			end
			if found == nil then
				add_fault(self, `{pointer}/relatedQuestion`, "is the id of no question of this session")
			elseif found.status == "answered" then
				add_fault(self, `{pointer}/relatedQuestion`, "was answered: nothing has to be assumed in its place")
			end
		end
	end
	check_unique(self, self.doc.assumptionLog, "assumptionId", "/assumptionLog")
end

local function check_discussions(self: Check)
	local limit = rules.cycle_limit(self.doc)
	local before, over = 0, 0
	for index, discussion in self.doc.councilDiscussions or {} do
		local pointer = `/councilDiscussions/{index - 1}`
		check_session_id(self, pointer, discussion)
		local number = discussion.cycleNumber
		if number <= before then
			add_fault(self, `{pointer}/cycleNumber`, `must be more than {before}, the one before it`)
		end
		before = math.max(before, number)
		if number > limit then
			add_fault(self, `{pointer}/cycleNumber`, `is beyond the limit of {limit} cycles`)
		end
		over += if discussion.status == "in_progress" then 0 else 1
		if discussion.status == "concluded" then
			if discussion.resolutionSummary == nil then
				add_fault(self, `{pointer}/status`, "is concluded without a resolutionSummary")
			end
			if number == limit then
				add_fault(self, `{pointer}/status`, `must be limit_reached: {limit} is the last cycle`)
			end
		elseif discussion.status == "limit_reached" and number < limit and number ~= rules.CYCLES then
			add_fault(self, `{pointer}/status`, `is limit_reached, and the limit is {limit}`)
		end
		local persons: { [string]: boolean }, count = {}, 0
		for _, participant in discussion.participatingPersonas do
			count += if persons[participant.name] then 0 else 1
			persons[participant.name] = true
		end
		if count < 2 then
			add_fault(self, `{pointer}/participatingPersonas`, "needs two personas: one alone discusses nothing")
		end
		for place, participant in discussion.participatingPersonas do
			check_participant(self, `{pointer}/participatingPersonas/{place - 1}`, participant, "persona")
		end
		for place, id in discussion.messageTurns do
			local turn = self.turns[id]
			local here = `{pointer}/messageTurns/{place - 1}`
			if turn == nil then
				add_fault(self, here, "is the id of no turn of this session")
			elseif turn.messageType ~= "discussion" then
				add_fault(self, here, `is a turn of type {turn.messageType}, not discussion`)
			elseif turn.relatedCycleOrRound.number ~= number then
				add_fault(self, here, `belongs to cycle {turn.relatedCycleOrRound.number}`)
			end
		end
	end
	if over ~= self.doc.debateCycles and self.doc.debateCycles <= limit and self.doc.councilDiscussions ~= nil then
		add_remark(self, "/debateCycles", `counts {self.doc.debateCycles}, and {over} are over`)
	end
	check_unique(self, self.doc.councilDiscussions or {}, "discussionId", "/councilDiscussions")
end

local function check_selection(self: Check)
	local chosen = self.doc.personaSelection
	if type(chosen) ~= "table" then
		return
	end
	check_session_id(self, "/personaSelection", chosen)
	for index, participant in chosen.selectedPersonas do
		check_participant(self, `/personaSelection/selectedPersonas/{index - 1}`, participant, "persona")
	end
	if chosen.userOverride and #(chosen.overriddenPersonas or {}) == 0 then
		add_fault(self, "/personaSelection/overriddenPersonas", "is empty, and userOverride says that personas were named")
	end
	for index, name in chosen.overriddenPersonas or {} do
		check_persona_name(self, `/personaSelection/overriddenPersonas/{index - 1}`, name)
	end
end

--- What may be open in which status, and what a completed session must have.
local function check_status(self: Check)
	local doc = self.doc
	local status = doc.status
	if doc.debateCycles > rules.cycle_limit(doc) then
		add_fault(self, "/debateCycles", `is beyond the limit of {rules.cycle_limit(doc)} cycles`)
	end
	if status ~= "clarifying" and status ~= "cancelled" then
		for index, question in doc.clarificationQuestions or {} do
			if question.status == "pending" then
				add_fault(self, `/clarificationQuestions/{index - 1}/status`, `is pending while the session is {status}`)
			end
		end
	end
	if status ~= "debating" and status ~= "cancelled" then
		for index, discussion in doc.councilDiscussions or {} do
			if discussion.status == "in_progress" then
				add_fault(self, `/councilDiscussions/{index - 1}/status`, `is in_progress while the session is {status}`)
			end
		end
	end
	if status == "completed" then
		if type(doc.finalAnswer) ~= "string" then
			add_fault(self, "/finalAnswer", "is missing, and the session is completed")
		end
		if #doc.messageTurns == 0 then
			add_fault(self, "/messageTurns", "is empty, and the session is completed")
		end
	elseif type(doc.finalAnswer) == "string" and status ~= "final" and status ~= "cancelled" then
		add_fault(self, "/finalAnswer", `is there already, and the session is {status}`)
	end
end

--- Each point of the answer names a turn of the session and its sender.
local function check_attribution(self: Check)
	local decision = self.doc.metadata.decision
	if decision == nil then
		return
	end
	local function point(pointer: string, item: session.Values)
		for index, from in item.from do
			local here = `{pointer}/from/{index - 1}`
			local turn = self.turns[from.turnId]
			if turn == nil then
				add_fault(self, `{here}/turnId`, "is the id of no turn of this session")
			elseif turn.sender.name ~= from.name then
				add_fault(self, `{here}/name`, `did not say that: the turn is by "{turn.sender.name}"`)
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
function rules.check(doc: session.Values): { Fault }
	local self: Check = { doc = doc, faults = {}, participants = {}, turns = {} }
	for _, participant in doc.participants do
		self.participants[participant.participantId] = participant
	end
	for _, turn in doc.messageTurns do
		self.turns[turn.turnId] = turn
	end
	for _, part in
		{
			check_participants,
			check_turns,
			check_exchange,
			check_questions,
			check_assumptions,
			check_discussions,
			check_selection,
			check_status,
			check_attribution,
		}
	do
		part(self)
	end
	local function add(pointer: string, message: string, note: boolean?)
		if note then
			add_remark(self, pointer, message)
		else
			add_fault(self, pointer, message)
		end
	end
	state_rules.check_order(doc, add)
	state_rules.check_final(doc, add)
	state_rules.check_status(doc, add)
	state_rules.check_skips(doc, add)
	state_rules.check_remarks(doc, add)
	return self.faults
end

return rules
