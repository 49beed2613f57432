--!strict
--- What holds in a conversation: facts, decisions, constraints, open questions, ideas and what was revoked, each with an id that
--- is never used again, with who said it, and with the words that it rests on. A model proposes, this decides: a quote must stand
--- in what was said, to the letter but for spaces, quotation marks and the size of letters. Nothing is refused for its wording.
---
--- Entries are only ever added. What takes one away is an entry too (a `revocation`, with `of`), so that a session that goes back
--- to an earlier turn has what held there: `holding` is asked with the turns that count. Pure, and knows no mode: which kinds
--- there are, and what a turn is, callers say.

local figures = require("./figures")
local json = require("@nietz/json")
local list = require("./list")
local memo = require("./memo")
local number_words = require("./number_words")
local text = require("@nietz/text")

local ledger = {}

export type Entry = {
	--- From 1, in the order in which they came.
	id: number,
	--- `fact`, `decision`, `idea` … or `revocation`.
	kind: string,
	text: string,
	--- Who said it: `user`, or the name of a persona.
	by: string,
	--- The turn in which it was said; 0 is before the first.
	turn: number,
	--- The words that it rests on, as they were said; absent where `text` is those words.
	quote: string?,
	--- Of a revocation: the id of what holds no longer.
	of: number?,
	--- Of a decision.
	why: string?,
	rejected: string?,
	--- Of a step or a risk, where they were said.
	owner: string?,
	date: string?,
	--- Of an idea: 0 to 10, and the number that it has among the ideas.
	score: number?,
	idea: number?,
}

--- An entry without its id.
export type New = {
	kind: string,
	text: string,
	by: string,
	turn: number,
	quote: string?,
	why: string?,
	rejected: string?,
	owner: string?,
	date: string?,
	score: number?,
	idea: number?,
}

--- `last` is the last id that was given, also where its entry is gone.
export type Ledger = { last: number, entries: { Entry } }

--- What a model proposes after a turn: new entries, and the ids of those that the turn revoked, each with its quote.
export type Proposed = {
	kind: string,
	text: string?,
	quote: string?,
	why: string?,
	rejected: string?,
	owner: string?,
	date: string?,
	score: number?,
}
export type Revoking = { id: number, quote: string? }
export type Proposal = { entries: { Proposed }?, revoked: { Revoking }? }

--- What came of it, for showing: what was added, what was revoked, and what was refused with the reason.
export type Change = { added: { Entry }, revoked: { Entry }, refused: { { text: string, why: string } } }

--- The turns that count: a session that went back leaves others aside.
export type Counts = (turn: number) -> boolean

local REVOCATION = "revocation"

--- Returns an empty ledger.
function ledger.new(): Ledger
	return { last = 0, entries = json.array({} :: { Entry }) }
end

--- Returns a text as quotes are compared: small letters, no accents, one blank between words, plain quotation marks.
function ledger.plain(value: string): string
	local folded = string.gsub(text.fold(value), "\226\128[\152\153]", "'")
	folded = string.gsub(string.gsub(folded, "\226\128[\156\157]", '"'), "\226\128[\147\148]", "-")
	return text.trim((string.gsub(folded, "%s+", " ")))
end

--- Returns a quote without the marks that models put around it, and without a mark of an ending.
local function bare(value: string): string
	local kept = ledger.plain(value)
	repeat
		local before = kept
		kept = string.gsub(string.gsub(kept, "^[\"'`%s]+", ""), "[\"'`%s%.,;:!]+$", "")
		kept = string.gsub(string.gsub(string.gsub(kept, "^«%s*", ""), "%s*»$", ""), "…$", "")
	until kept == before
	return kept
end

--- Whether words stand in a text as they are, from the beginning of a word to the end of one.
function ledger.stands_in(words: string, place: string): boolean
	local from = 1
	while true do
		local first, last = string.find(place, words, from, true)
		if first == nil or last == nil then
			return false
		end
		local before, behind = string.sub(place, first - 1, first - 1), string.sub(place, last + 1, last + 1)
		if string.find(before, "%w") == nil and string.find(behind, "%w") == nil then
			return true
		end
		from = first + 1
	end
end

--- Whether a quote stands in what was said: but for the size of letters, accents, spaces, and the marks around it.
function ledger.is_said(quote: string, said: string): boolean
	local words = bare(quote)
	return #words >= 2 and ledger.stands_in(words, ledger.plain(said))
end

--- Returns the numbers that are written in a text, without a zero in front.
local function written_numbers(value: string): { string }
	local found: { string } = {}
	for number in string.gmatch(value, "%d[%d%.,]*") do
		local bare = string.gsub(string.gsub(number, "[%.,]+$", ""), "^0+(%d)", "%1")
		table.insert(found, bare)
	end
	return found
end

--- Returns a text in which neither blank nor comma stands between thousands.
local function joined(value: string): string
	local found = string.gsub(string.gsub(value, "\194\160", " "), "\226\128\175", " ")
	for _ = 1, 2 do
		found = string.gsub(found, "(%f[%d]%d%d?%d?)[, ](%d%d%d)%f[%D]", "%1%2")
	end
	return found
end

--- How many texts are kept with the numbers in them.
local MOST_READ = 4

--- Returns the numbers that a text has, in figures or in words.
local known_numbers = memo.of(MOST_READ, function(said): { [string]: boolean }
	local known: { [string]: boolean } = {}
	for _, place in { said, joined(said) } do
		for _, number in written_numbers(place) do
			known[number] = true
		end
	end
	for _, number in number_words.named(said) do
		known[number.written] = true
	end
	return known
end)

--- Returns the numbers of a text that nobody said.
local function invented_numbers(value: string, said: string): { string }
	local known = known_numbers(said)
	return list.filter(written_numbers(joined(value)), function(number): boolean
		return not known[number]
	end)
end

--- Returns a number of a text that nobody said, or nil: figures are what a model invents most believably. What was said as a word
--- was said, and thousands are the same with a mark between them.
function ledger.invented_number(value: string, said: string): string?
	return invented_numbers(value, said)[1]
end

--- How much of a text must be left where what a model worked out is taken out of it.
local LEAST_KEPT = 0.5

--- Returns a text without its clauses that have a number which nobody said; nil where its first one has, or little would be left. Where
--- it `reckons`, what comes of two that were said and stand beside it is said.
local function without_invented(value: string, said: string, reckons: boolean): string?
	-- Any two of many would give any figure.
	local beside: { figures.Figure } = {}
	local all: { { figures.Figure } } = if reckons then { figures.of(value), number_words.named(value) } else {}
	for _, some in all do
		for _, figure in some do
			if ledger.invented_number(figure.written, said) == nil then
				table.insert(beside, figure)
			end
		end
	end
	local function is_invented(piece: string): boolean
		return list.some(invented_numbers(piece, said), function(number): boolean
			return not figures.comes_of(number, beside)
		end)
	end
	if not is_invented(value) then
		return value
	end
	local bare = string.gsub(value, "%s*%b()", function(inner): string?
		return if is_invented(inner) then "" else nil
	end)
	local out, from, mark = "", 1, ""
	while from <= #bare do
		local at = string.find(bare, "[,;:]%s", from) or #bare + 1
		local clause = string.sub(bare, from, at - 1)
		if not is_invented(clause) then
			out ..= mark .. clause
			mark = string.sub(bare, at, at + 1)
		elseif from == 1 then
			return nil
		end
		from = at + 2
	end
	local stop = string.match(value, "[%.!%?]$") or ""
	out = if stop ~= "" and string.sub(out, -1) ~= stop then out .. stop else out
	return if #out >= LEAST_KEPT * #value then out else nil
end

--- Returns the entry with this id, or nil.
function ledger.find(book: Ledger, id: number): Entry?
	return list.find(book.entries, function(entry): boolean
		return entry.id == id
	end)
end

local function all_turns(_: number): boolean
	return true
end

--- Returns the ids that a revocation took away, by its own id.
local function revoked_ids(book: Ledger, counts: Counts): { [number]: number }
	local gone: { [number]: number } = {}
	for _, entry in book.entries do
		if entry.kind == REVOCATION and entry.of ~= nil and counts(entry.turn) then
			gone[entry.of] = entry.id
		end
	end
	return gone
end

--- Returns what holds, in the order in which it came; of these kinds, where they are given. Revocations hold nothing themselves.
function ledger.holding(book: Ledger, counts: Counts?, kinds: { string }?): { Entry }
	local is = counts or all_turns
	local gone = revoked_ids(book, is)
	return list.filter(book.entries, function(entry): boolean
		local wanted = kinds == nil or table.find(kinds, entry.kind) ~= nil
		return wanted and entry.kind ~= REVOCATION and is(entry.turn) and gone[entry.id] == nil
	end)
end

--- Returns what was said and holds no longer, in the turns that count.
function ledger.revoked(book: Ledger, counts: Counts?): { Entry }
	local is = counts or all_turns
	local gone = revoked_ids(book, is)
	return list.filter(book.entries, function(entry): boolean
		return gone[entry.id] ~= nil and is(entry.turn)
	end)
end

--- Returns the entries of one turn, revocations among them.
function ledger.of_turn(book: Ledger, turn: number): { Entry }
	return list.filter(book.entries, function(entry): boolean
		return entry.turn == turn
	end)
end

--- Whether something that holds says just these words already.
local function stands(book: Ledger, kind: string, value: string, counts: Counts): boolean
	local words = bare(value)
	return list.some(ledger.holding(book, counts, { kind }), function(entry): boolean
		return bare(entry.text) == words
	end)
end

--- Adds an entry, whose id is given here, and returns it, or nil where what holds says the same words already.
function ledger.add(book: Ledger, entry: New, counts: Counts?): Entry?
	local value = text.trim((string.gsub(entry.text, "%s+", " ")))
	if value == "" or stands(book, entry.kind, value, counts or all_turns) then
		return nil
	end
	book.last += 1
	local quote = entry.quote
	local made: Entry = {
		id = book.last,
		kind = entry.kind,
		text = value,
		by = entry.by,
		turn = entry.turn,
		quote = if quote ~= nil and bare(quote) ~= bare(value) then quote else nil,
		why = entry.why,
		rejected = entry.rejected,
		owner = entry.owner,
		date = entry.date,
		score = entry.score,
		idea = entry.idea,
	}
	table.insert(book.entries, made)
	return made
end

--- Takes an entry away by a revocation, and returns that, or nil where it does not hold.
function ledger.revoke(book: Ledger, id: number, how: { by: string, turn: number, quote: string? }, counts: Counts?): Entry?
	local entry = list.find(ledger.holding(book, counts), function(one): boolean
		return one.id == id
	end)
	if entry == nil then
		return nil
	end
	book.last += 1
	local made: Entry = {
		id = book.last,
		kind = REVOCATION,
		text = entry.text,
		by = how.by,
		turn = how.turn,
		quote = how.quote,
		of = id,
	}
	table.insert(book.entries, made)
	return made
end

--- Returns a field that a model gave, or nil where it has nothing in it.
local function given(value: any): string?
	local line = if type(value) == "string" then text.trim((string.gsub(value, "%s+", " "))) else ""
	return if line == "" or line == "-" or text.fold(line) == "none" then nil else line
end

--- Takes what a model proposes after a turn.
---
--- `said` is what was said in the turn: what takes something away must stand there. An entry may rest on what was said before as
--- well (`heard`), as what is left of one that was taken away in part. `known` is what may be meant beside it (questions,
--- suggestions), for figures. An entry whose quote nobody said is refused. One whose text has a figure that nobody said is kept
--- without what says it, or in the words of its quote; one of a kind that `reckons`, as an open question, may have what comes of two
--- that were said and that it has. `by` is whose words they are.
function ledger.apply(
	book: Ledger,
	proposal: Proposal,
	turn: { number: number, by: string, said: string, heard: string?, known: string, reckons: { string }? },
	counts: Counts?
): Change
	local change: Change = { added = {}, revoked = {}, refused = {} }
	local said_or_known = turn.said .. "\n" .. turn.known
	local revoked: { Revoking } = proposal.revoked or {}
	for _, raw in revoked do
		local quote = given(raw.quote)
		local entry = ledger.find(book, raw.id)
		if quote == nil or not ledger.is_said(quote, turn.said) then
			table.insert(change.refused, { text = `#{raw.id}`, why = "quote" })
		elseif entry == nil or ledger.revoke(book, raw.id, { by = turn.by, turn = turn.number, quote = quote }, counts) == nil then
			table.insert(change.refused, { text = `#{raw.id}`, why = "id" })
		else
			table.insert(change.revoked, entry)
		end
	end
	local entries: { Proposed } = proposal.entries or {}
	for _, raw in entries do
		local quote, value = given(raw.quote), given(raw.text)
		if quote == nil or not (ledger.is_said(quote, turn.said) or ledger.is_said(quote, turn.heard or "")) then
			table.insert(change.refused, { text = value or quote or "", why = "quote" })
			continue
		end
		local reckons = table.find(turn.reckons or {}, raw.kind) ~= nil
		local function as_said(field: any): string?
			local told = given(field)
			return if told ~= nil then without_invented(told, said_or_known, reckons) else nil
		end
		local made = ledger.add(book, {
			kind = raw.kind,
			text = as_said(raw.text) or quote,
			by = turn.by,
			turn = turn.number,
			quote = quote,
			why = as_said(raw.why),
			rejected = as_said(raw.rejected),
			owner = as_said(raw.owner),
			date = as_said(raw.date),
			score = raw.score,
		}, counts)
		if made ~= nil then
			table.insert(change.added, made)
		end
	end
	return change
end

--- Words behind whose dot no sentence ends.
local SHORTENED = { "e.g", "i.e", "approx", "incl", "mr", "mrs", "dr", "no", "vs", "ca", "max", "min", "resp", "etc", "p.ex", "env" }

--- What stands before the day of a month where that has a dot: "am Montag den 12. Januar".
local BEFORE_DAYS = { "den", "dem", "am", "der", "vom", "zum", "bis", "ab", "seit", "und", "oder", "ca" }

--- Whether what looks like the end of a sentence is none: the dot of a day, and dots that trail off in the middle of it.
local function goes_on(before: string?, word: string, behind: string?): boolean
	local is_day = string.find(word, "^%d%d?%.$") ~= nil and before ~= nil
	if is_day and (table.find(BEFORE_DAYS, text.fold(before :: string)) ~= nil or string.find(before :: string, "^%d%d?%.$") ~= nil) then
		return true
	end
	local trails = string.find(word, "%.%.%.$") ~= nil or string.find(word, "\226\128\166$") ~= nil
	return trails and behind ~= nil and string.find(behind, "^%l") ~= nil
end

--- Returns the sentences of a text. Neither a comma nor a semicolon ends one, nor the dot of a number, of a day or of a short word.
function ledger.sentences(value: string): { string }
	local found: { string } = {}
	for _, line in text.lines(value) do
		local open = ""
		local words = string.split((string.gsub(text.trim(line), "%s+", " ")), " ")
		for at, word in words do
			open = if open == "" then word else `{open} {word}`
			local stem = string.match(word, "^[%(%[\"']*(.-)%.$")
			local short = stem ~= nil and table.find(SHORTENED, text.fold(stem)) ~= nil
			if text.search(word, "[.!?…][\"')\\]”»]*$") ~= nil and not short and not goes_on(words[at - 1], word, words[at + 1]) then
				table.insert(found, open)
				open = ""
			end
		end
		if open ~= "" then
			table.insert(found, open)
		end
	end
	return found
end

--- How much of a sentence may stand in no quote.
local MOST_LEFT = 0.5

--- Returns how much of a sentence stands in none of these quotes, and in no word of `told`, from 0 to 1, by its letters.
local function left_of(sentence: string, quotes: { string }, told: { [string]: boolean }): number
	local whole = ledger.plain(sentence)
	local rest = whole
	for _, quote in quotes do
		local words = bare(quote)
		local first, last = string.find(rest, words, 1, true)
		if first ~= nil and last ~= nil and #words > 1 then
			rest = string.sub(rest, 1, first - 1) .. "\n" .. string.sub(rest, last + 1)
		end
	end
	local untold = string.gsub(rest, "[%w\128-\255]+", function(word: string): string?
		return if told[word] then "" else nil
	end)
	-- The words around a figure that is told nowhere say little.
	rest = if string.find(untold, "%d") == nil then untold else rest
	return #string.gsub(rest, "[%s%p]", "") / math.max(1, #string.gsub(whole, "[%s%p]", ""))
end

--- Returns the sentences of what was said in a turn of which more than half stands neither in the words that entries rest on, nor
--- in theirs, nor in `others`: nothing that a user said is lost because a model passed over it.
function ledger.uncovered(book: Ledger, turn: number, said: string, others: { string }): { string }
	local quotes = table.clone(others)
	local told: { [string]: boolean } = {}
	for _, entry in ledger.of_turn(book, turn) do
		if entry.kind ~= REVOCATION then
			for word in string.gmatch(ledger.plain(`{entry.text} {entry.why or ""} {entry.rejected or ""}`), "[%w\128-\255]+") do
				told[word] = true
			end
			local quote = entry.quote or entry.text
			table.insert(quotes, quote)
			-- One that goes over the end of a sentence covers a part of each.
			local parts = ledger.sentences(quote)
			table.move(parts, 1, #parts, #quotes + 1, quotes)
		end
	end
	return list.filter(ledger.sentences(said), function(sentence): boolean
		local within = list.some(quotes, function(quote): boolean
			return ledger.is_said(sentence, quote)
		end)
		return not within and left_of(sentence, quotes, told) > MOST_LEFT
	end)
end

return ledger
