--!strict
--- Rules of states and of what belongs together, judged by turns and entities alone and never by fields of ours: so that a session
--- of another program is really checked. Pure; part of `rules.lua`.

local ledger = require("../common/ledger")
local list = require("../common/list")
local session = require("./session")

local state_rules = {}

--- Adds a fault, or with `note` a remark.
export type Add = (pointer: string, message: string, note: boolean?) -> ()

--- The statuses that a session can have while a turn of each type is said.
local STATUSES: { [string]: { string } } = {
	question = { "clarifying" },
	answer = { "clarifying" },
	assumption_statement = { "clarifying" },
	discussion = { "debating" },
	conclusion = { "debating", "final" },
}

local function is_discussion(turn: session.Values): boolean
	return turn.messageType == "discussion"
end

--- Whether the user left questions out and asked for the answer: then there is no debate.
local function is_without_debate(doc: session.Values): boolean
	return #(doc.councilDiscussions or {}) == 0
		and not list.some(doc.messageTurns, is_discussion)
		and list.some(doc.clarificationQuestions or {}, function(question: session.Values): boolean
			return question.status == "skipped" or question.status == "deferred"
		end)
end

--- Returns by cycle the places of its first and its last turn that answers nobody's question.
local function spans(doc: session.Values): { [number]: { first: number, last: number } }
	local found: { [number]: { first: number, last: number } } = {}
	for index, turn in doc.messageTurns do
		if is_discussion(turn) then
			local number = turn.relatedCycleOrRound.number
			found[number] = found[number] or { first = index, last = index }
			found[number].last = index
		end
	end
	return found
end

--- Whether this question was asked before this place.
local function is_asked_again(doc: session.Values, place: number): boolean
	local turn = doc.messageTurns[place]
	for index = 1, place - 1 do
		local other = doc.messageTurns[index]
		local same = (turn.metadata or {}).questionId ~= nil and (other.metadata or {}).questionId == (turn.metadata or {}).questionId
		if other.messageType == "question" and (same or other.content == turn.content) then
			return true
		end
	end
	return false
end

--- Questions come before the debate or between cycles, discussions while no question waits, conclusions when all cycles are over.
function state_rules.check_order(doc: session.Values, add: Add)
	local cycles = spans(doc)
	local waits, debated = false, false
	for index, turn in doc.messageTurns do
		local pointer = `/messageTurns/{index - 1}`
		local kind = turn.messageType
		local written = (turn.metadata or {}).status
		if written ~= nil and table.find(STATUSES[kind], written) == nil then
			local what = if kind == "question"
				then "a question is asked"
				elseif kind == "answer" then "an answer is given"
				elseif kind == "discussion" then "a discussion takes place"
				elseif kind == "conclusion" then "a conclusion is drawn"
				else "an assumption is stated"
			add(pointer, `{what} while the status is {STATUSES[kind][1]}, not {written}`)
		end
		local inside: number? = nil
		for number, span in cycles do
			inside = if span.first < index and index < span.last then number else inside
		end
		if (kind == "question" or kind == "assumption_statement") and inside ~= nil then
			add(pointer, `is said in the middle of cycle {inside}: clarification is over while the council debates`)
		elseif kind == "question" and debated and not is_asked_again(doc, index) then
			add(pointer, "is asked for the first time after the debate has begun")
		elseif kind == "discussion" and waits then
			add(pointer, "is a discussion while a question waits for its answer")
		elseif kind == "conclusion" and not debated and not is_without_debate(doc) then
			add(pointer, "is a conclusion, and nobody has debated")
		elseif kind == "conclusion" and doc.status == "debating" then
			for _, discussion in doc.councilDiscussions or {} :: { session.Values } do
				if discussion.status == "in_progress" then
					add(pointer, `is a conclusion while cycle {discussion.cycleNumber} is in progress`)
				end
			end
		end
		-- Told once: what follows is a consequence.
		waits = if kind == "question" then true elseif kind == "answer" or kind == "discussion" then false else waits
		debated = debated or is_discussion(turn)
	end
end

--- At most one turn has the status of the final answer: by its words, or by its own account.
function state_rules.check_final(doc: session.Values, add: Add)
	local finals = 0
	for index, turn in doc.messageTurns do
		local is_answer = turn.messageType == "conclusion" and type(doc.finalAnswer) == "string" and turn.content == doc.finalAnswer
		if is_answer or (turn.metadata or {}).status == "final" then
			finals += 1
			if finals > 1 then
				add(`/messageTurns/{index - 1}`, "is a second turn with the status final")
			end
		end
	end
end

--- What the session's status demands.
function state_rules.check_status(doc: session.Values, add: Add)
	local last = doc.messageTurns[#doc.messageTurns]
	if last == nil then
		return
	end
	if doc.status == "clarifying" and (is_discussion(last) or last.messageType == "conclusion") then
		add("/status", `is clarifying, and the last turn is a {last.messageType}`)
	end
	local needs_seats = doc.status == "debating" or doc.status == "final" or doc.status == "completed"
	if needs_seats and type(doc.personaSelection) ~= "table" and not is_without_debate(doc) then
		add("/personaSelection", `is missing, and the session is {doc.status}`)
	end
end

--- A question that was left out has its assumption, in the log and as a turn, which names it.
function state_rules.check_skips(doc: session.Values, add: Add)
	for index, question in doc.clarificationQuestions or {} :: { session.Values } do
		local pointer = `/clarificationQuestions/{index - 1}`
		local answer = question.userAnswer
		local left_out = question.status == "skipped" or question.status == "deferred"
		if answer ~= nil and left_out and not answer.skipCommand then
			add(`{pointer}/userAnswer/skipCommand`, `must be true: the question is {question.status}`)
		elseif answer ~= nil and answer.skipCommand and question.status ~= "answered" then
			local stated: session.Values?, place = nil, 0
			for at, assumption in doc.assumptionLog do
				if assumption.relatedQuestion == question.questionId then
					stated, place = assumption, at
				end
			end
			if stated == nil then
				add(`{pointer}/userAnswer/skipCommand`, "is true, and assumptionLog has nothing for this question")
			elseif string.find(ledger.plain(stated.assumption), ledger.plain(question.question), 1, true) == nil then
				add(`/assumptionLog/{place - 1}/assumption`, "does not name the question that it stands for")
			elseif
				not list.some(doc.messageTurns, function(turn: session.Values): boolean
					return turn.messageType == "assumption_statement" and turn.content == stated.assumption
				end)
			then
				add(`/assumptionLog/{place - 1}/assumption`, "is stated in no turn of type assumption_statement")
			end
		end
	end
end

--- What is odd and refuses nothing.
function state_rules.check_remarks(doc: session.Values, add: Add)
	local asked = 0
	for _, turn in doc.messageTurns do
		asked = if turn.messageType == "question" then math.max(asked, turn.relatedCycleOrRound.number) else asked
	end
	if doc.clarificationRounds == 0 and asked > 0 and doc.status ~= "clarifying" and doc.status ~= "cancelled" then
		add("/clarificationRounds", `is 0, and questions of {asked} round{if asked == 1 then " were" else "s were"} asked`, true)
	end
	local listed: { [string]: boolean }, cycles: { [number]: boolean } = {}, {}
	for _, discussion in doc.councilDiscussions or {} :: { session.Values } do
		cycles[discussion.cycleNumber] = true
		for _, id in discussion.messageTurns do
			listed[id] = true
		end
	end
	for index, turn in doc.messageTurns do
		if is_discussion(turn) and not listed[turn.turnId] and cycles[turn.relatedCycleOrRound.number] then
			add(`/messageTurns/{index - 1}`, "is a discussion turn that no cycle lists", true)
		end
	end
	local chosen = doc.personaSelection
	if type(chosen) == "table" then
		for index, name in chosen.overriddenPersonas or {} :: { string } do
			local is_selected = list.some(chosen.selectedPersonas, function(participant: session.Values): boolean
				return participant.name == name
			end)
			if not is_selected then
				add(`/personaSelection/overriddenPersonas/{index - 1}`, `"{name}" was named and is not selected`, true)
			end
		end
	end
end

return state_rules
