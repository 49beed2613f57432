--!strict
--- What a large mind reads before each task: the subject, what the project says, and the whole conversation with what was noted of
--- it. It is told in pieces: each call adds one with what came since the last call, and none is ever told in another way. So a
--- request begins with the one before it, whoever speaks, and providers keep it in their caches. Pure but for `nietz.told`, which
--- holds the order.

local about = require("../common/about")
local clock = require("@nietz/clock")
local json = require("@nietz/json")
local ledger = require("../common/ledger")
local list = require("../common/list")
local session = require("./session")
local template = require("@nietz/template")
local text = require("@nietz/text")

local transcript = {}

--- The notes that are a part of the conversation, and what stands before each; what the user said has a number instead.
local NOTES: { [string]: string } = {
	user = "",
	aside = "Asked apart",
	security = "A threat",
	spike = "An experiment",
	rivals = "What people do today",
	lookups = "To be looked up",
	ways = "A direction to look in",
}

local function key_of(part: session.Part): string
	return `{part.kind} {part.turn} {part.at}`
end

--- Returns all parts of a turn, in the order in which they are told where nothing else is known.
local function parts_of(doc: session.Doc, turn: number, responses: { string }): { session.Part }
	local found: { session.Part } = {}
	for at in responses do
		table.insert(found, { kind = "answer", turn = turn, at = at })
	end
	for at, round in doc.nietz.rounds do
		if round.iteration == turn then
			table.insert(found, { kind = "round", turn = turn, at = at })
		end
	end
	for at, note in doc.nietz.notes do
		if note.iteration == turn and NOTES[note.kind or ""] ~= nil then
			table.insert(found, { kind = "note", turn = turn, at = at })
		end
	end
	for _, entry in ledger.of_turn(doc.nietz.ledger, turn) do
		table.insert(found, { kind = "entry", turn = turn, at = entry.id })
	end
	return found
end

--- Adds what was not told yet, as one piece, and returns the pieces that count: what a `back` left is in none.
local function pieces(doc: session.Doc): { { session.Part } }
	local own = doc.nietz
	local told: { { session.Part } } = own.told or json.array({} :: { { session.Part } })
	local known: { [string]: boolean } = {}
	for _, piece in told do
		for _, part in piece do
			known[key_of(part)] = true
		end
	end
	local new = json.array({} :: { session.Part })
	local function add(turn: number, responses: { string })
		for _, part in parts_of(doc, turn, responses) do
			if not known[key_of(part)] then
				table.insert(new, part)
			end
		end
	end
	add(0, {})
	for _, entry in session.counted_history(doc) do
		add(entry.iteration, entry.responses)
	end
	if #new > 0 then
		table.insert(told, new)
		own.told = told
	end
	local counts = session.counts(doc)
	local counted = list.map(told, function(piece): { session.Part }
		return list.filter(piece, function(part): boolean
			return counts(part.turn)
		end)
	end)
	return list.filter(counted, function(piece): boolean
		return #piece > 0
	end)
end

local function entry_line(entry: ledger.Entry): string
	if entry.kind == "revocation" then
		return `#{entry.id} takes away #{entry.of} ({entry.text})`
	end
	local by = if entry.by == "user" then "" else `, {entry.by}`
	local line = `#{entry.id} {entry.kind}{by}: {entry.text}`
	local more: { string } = {}
	local function add(label: string, value: string?)
		if value ~= nil then
			table.insert(more, `{label}: {value}`)
		end
	end
	add("why", entry.why)
	add("rejected", entry.rejected)
	add("owner", entry.owner)
	add("date", entry.date)
	return if #more > 0 then `{line} ({table.concat(more, "; ")})` else line
end

--- How an answer speaks of suggestions without their letters, in the languages of the flows.
local MEANS_THEM =
	"\\b((all|any|none|one|both|either|neither|most) of (those|these|them|that)|neither|the (first|second|third|last|former|latter)( one)?|(tout|tous|toutes|rien|aucune?) (de )?(ca|cela|celles|ceux)|(tous|toutes) les (trois|quatre)|les deux|aucune? des|(la|le) (premiere?|deuxieme|seconde?|derniere?)|all(e|es) (davon|das)|(keine?s?|nichts|beides?|eines?) davon|beides?|d(as|ie|er) (erste|zweite|dritte|letzte)|(todas|todos|ningun[ao]?|nada) (de )?(es[ao]s?|est[ao]s?|ell[ao]s)|las dos)\\b"

--- Whether an answer speaks of suggestions, by their letters ("a for the factory, b otherwise") or together ("none of those"). A lone
--- `a` within a sentence is a word.
local function names_suggestions(answer: string): boolean
	-- The end of "I'd" is no letter of theirs.
	local plain = string.gsub(text.fold(answer), "\226\128[\152\153]", "'")
	local folded = ` {string.gsub(plain, "'%a", "")} `
	return text.search(plain, MEANS_THEM) ~= nil
		or string.find(folded, "[%s%p][b-d][%s%p]") ~= nil
		or string.find(folded, "^%s*a[%s%p]") ~= nil
		or string.find(folded, "[%.,;:%(]%s*a[%s%p]") ~= nil
end

--- Returns what was suggested for a question, with its letters, where the answer speaks of it; else nothing.
local function suggested(doc: session.Doc, question: string, answer: string): string
	if not names_suggestions(answer) then
		return ""
	end
	local offer = list.find(doc.nietz.offered or {} :: { session.Offer }, function(one): boolean
		return one.question == question
	end)
	local lines: { string } = {}
	local suggestions: { string } = if offer then offer.suggestions or {} else {}
	for index, suggestion in suggestions do
		table.insert(lines, `{string.sub("abcdefgh", index, index)}: {suggestion}`)
	end
	return if #lines > 0 then ` ({table.concat(lines, "; ")})` else ""
end

local function round_lines(doc: session.Doc, at: number): { string }
	local held = doc.nietz.rounds[at]
	local topic, points = session.points(doc, held.kind, held.round)
	if topic == nil then
		return {}
	end
	local lines = { `{if held.kind == "party" then "Party" else "Panel"}, round {held.round}, on: {topic}` }
	for _, point in points do
		table.insert(lines, `- {point.by}: {point.text}`)
	end
	return lines
end

--- Numbers what the user said, in the order in which it is told.
type Numbers = { last: number, of: { [string]: number } }

local function numbered(numbers: Numbers, part: session.Part): number
	numbers.last += 1
	numbers.of[key_of(part)] = numbers.last
	return numbers.last
end

--- Returns the history entry of an iteration; what was told of it stays, so there is one.
local function entry_of(doc: session.Doc, turn: number): session.Iteration
	return list.find(doc.session.history, function(entry: session.Iteration): boolean
		return entry.iteration == turn
	end) :: session.Iteration
end

local function part_lines(doc: session.Doc, part: session.Part, numbers: Numbers): { string }
	if part.kind == "answer" then
		local entry = entry_of(doc, part.turn)
		local answer = entry.responses[part.at] or ""
		local question = entry.questions[part.at]
		return {
			`Q: {question}{suggested(doc, question, answer)}`,
			if answer == "" then "(left open)" else `U{numbered(numbers, part)}: {answer}`,
		}
	elseif part.kind == "round" then
		return round_lines(doc, part.at)
	elseif part.kind == "entry" then
		local entry = ledger.find(doc.nietz.ledger, part.at)
		return if entry then { entry_line(entry) } else {}
	end
	local note = doc.nietz.notes[part.at]
	local lines: { string } = if note.about then { `Q: {note.about}` } else {}
	local who = if note.kind == "user"
		then `U{numbered(numbers, part)}`
		else note.by or (if note.about then "A" else NOTES[note.kind or ""])
	table.insert(lines, `{who}: {note.text}`)
	return lines
end

local WEEKDAYS = { "Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday" }

--- Returns a day (`2026-01-09`) with its weekday: people say "by Friday".
function transcript.date(day: string): string
	local seconds = clock.parse(`{day}T12:00:00Z`)
	return if seconds == nil then day else `{WEEKDAYS[math.floor(seconds / 86400) % 7 + 1]}, {day}`
end

--- Returns the pieces as they are told, and the numbers of what the user said.
local function told_pieces(doc: session.Doc): ({ string }, Numbers)
	local numbers: Numbers = { last = 0, of = {} }
	local turn = -1
	local day = string.sub(doc.session.created, 1, 10)
	local told: { string } = {}
	for _, piece in pieces(doc) do
		local paragraphs: { string } = {}
		local noting = false
		for _, part in piece do
			if part.turn ~= turn then
				turn, noting = part.turn, false
				-- Another day than the one before it is said.
				local now = if turn == 0 then day else string.sub(entry_of(doc, turn).timestamp or day, 1, 10)
				local when = if now ~= day then ` ({transcript.date(now)})` else ""
				day = now
				table.insert(paragraphs, if turn == 0 then "# Before the first questions" else `# Iteration {turn}{when}`)
			end
			local lines = table.concat(part_lines(doc, part, numbers), "\n")
			if part.kind == "entry" and noting then
				paragraphs[#paragraphs] ..= `\n{lines}`
			elseif lines ~= "" then
				table.insert(paragraphs, if part.kind == "entry" then `Noted:\n{lines}` else lines)
			end
			noting = part.kind == "entry"
		end
		table.insert(told, table.concat(paragraphs, "\n\n"))
	end
	return told, numbers
end

--- Returns the conversation up to where the session stands, as one text.
function transcript.text(doc: session.Doc): string
	return table.concat((told_pieces(doc)), "\n\n")
end

--- Returns all that the user said, where it counts: the subject, answers, and notes.
function transcript.said(doc: session.Doc): string
	local lines = { doc.nietz.topic }
	for _, entry in session.counted_history(doc) do
		table.move(entry.responses, 1, #entry.responses, #lines + 1, lines)
	end
	for _, note in session.notes(doc, { "user" }) do
		table.insert(lines, note.text)
	end
	return table.concat(lines, "\n")
end

--- Returns what the user put into the ledger, or struck out, by a command: nobody noted it, they said it so.
local function commanded(doc: session.Doc, id: number, said: string): string
	local entry = ledger.find(doc.nietz.ledger, id)
	if entry == nil or entry.by ~= "user" or entry.quote ~= nil then
		return ""
	elseif entry.kind == "revocation" then
		return `They struck out: {entry.text}`
	end
	return if ledger.is_said(entry.text, said) then "" else `They put down ({entry.kind}): {entry.text}`
end

--- Returns the conversation as it was spoken, without what was noted of it.
function transcript.spoken(doc: session.Doc): string
	local said = transcript.said(doc)
	local numbers: Numbers = { last = 0, of = {} }
	local told: { string } = {}
	for _, piece in pieces(doc) do
		for _, part in piece do
			local lines = if part.kind == "entry" then commanded(doc, part.at, said) else table.concat(part_lines(doc, part, numbers), "\n")
			if lines ~= "" then
				table.insert(told, lines)
			end
		end
	end
	return table.concat(told, "\n\n")
end

--- Returns the numbers under which these parts of what the user said are told: `U3, U4 and U5`.
function transcript.names(doc: session.Doc, parts: { session.Part }): string
	local _, numbers = told_pieces(doc)
	local names: { string } = {}
	for _, part in parts do
		table.insert(names, `U{numbers.of[key_of(part)]}`)
	end
	local last = table.remove(names)
	return if #names > 0 then `{table.concat(names, ", ")} and {last}` else last or ""
end

--- Returns what stands before each task, piece by piece.
function transcript.render(doc: session.Doc, kind: string?, reading: about.Reading): { string }
	local found = {
		text.trim(template.render("./prompts/large/subject.md", {
			topic = doc.nietz.topic,
			date = transcript.date(string.sub(doc.session.created, 1, 10)),
			template = kind or "",
			files = reading.files,
		})),
	}
	for _, piece in (told_pieces(doc)) do
		table.insert(found, piece)
	end
	return found
end

return transcript
