--!strict
--- What an answer rests on: what the user said and still holds. A writer says it fact by fact, each with the user's words; what it
--- passed over is added in those words, and what was taken back is cut out of them. So nothing that was said is lost, and nothing
--- that was taken back comes back.

local app = require("./app")
local json = require("@nietz/json")
local ledger = require("../common/ledger")
local list = require("../common/list")
local similarity = require("../common/similarity")
local text = require("@nietz/text")

local known = {}

--- `quote` are the user's words; absent where `text` is those.
export type Fact = { text: string, quote: string? }

local KINDS = { "context", "answer", "remark", "fact" }
--- From this share of its words on a clause is told by what quotes it.
local TOLD = 0.6
--- What a piece begins or ends with once something was cut out of it.
local LOOSE = { "^[%s,;:%.]+", "[%s,;:]+$", "^and%s+", "^but%s+", "^et%s+", "^mais%s+", "%s+and$", "%s+but$", "%s+et$", "%s+mais$" }

--- Returns the words that the user took back: what they struck, and what the writer found, where later words of theirs say so.
function known.taken_back(self: app.App): { string }
	return list.map(self.doc.nietz.takenBack or {} :: { app.Values }, function(item: app.Values): string
		return item.quote
	end)
end

--- Whether later words of the user (`by`) come after earlier ones (`quote`).
local function is_later(self: app.App, quote: string, by: string): boolean
	local first: number? = nil
	for _, entry in self.book.entries do
		if first == nil and ledger.is_said(quote, entry.text) then
			first = entry.id
		elseif first ~= nil and ledger.is_said(by, entry.text) then
			return true
		end
	end
	return false
end

--- Takes back what a writer found to be taken back. Without later words of the user nothing is.
function known.take_back(self: app.App, found: { app.Values })
	local before = known.taken_back(self)
	for _, item in found do
		if table.find(before, item.quote) == nil and is_later(self, item.quote, item.by) then
			app.record_event(self, "taken_back", { quote = item.quote, by = item.by })
		end
	end
end

--- Returns a text without what stands between two places, in two pieces.
local function cut(piece: string, words: string): { string }
	local from, last = string.find(piece, words, 1, true)
	if from ~= nil and last ~= nil then
		return { string.sub(piece, 1, from - 1), string.sub(piece, last + 1) }
	end
	return { piece }
end

local function tidy(piece: string): string
	local out = piece
	for _ = 1, 2 do
		for _, pattern in LOOSE do
			out = string.gsub(out, pattern, "")
		end
	end
	return text.trim(out)
end

--- Returns what is left of a sentence when what was taken back is cut out of it.
local function left_of(sentence: string, gone: { string }): { string }
	local pieces = { sentence }
	local was_cut = false
	for _, words in gone do
		local next: { string } = {}
		for _, piece in pieces do
			local parts = cut(piece, words)
			was_cut = was_cut or #parts > 1
			for _, part in parts do
				-- In other spelling it cannot be cut out: then the piece goes as a whole.
				if #parts > 1 or not ledger.is_said(words, part) then
					table.insert(next, part)
				end
			end
		end
		pieces = next
	end
	if was_cut then
		pieces = list.map(pieces, tidy)
	end
	return list.filter(pieces, function(piece): boolean
		return #similarity.words(piece) > 0 or string.find(piece, "%d") ~= nil
	end)
end

--- Returns the clauses of a sentence. A comma between digits ends none.
local function clauses(sentence: string): { string }
	local marked = string.gsub(sentence, "([,;:])%s+", "%1\n")
	marked = string.gsub(marked, "%s+[–—]%s+", "\n")
	return list.filter(list.map(text.lines(marked), text.trim), function(clause): boolean
		return clause ~= ""
	end)
end

--- Whether what was quoted tells a clause: all its figures, and most of its words.
local function is_told(clause: string, quotes: string): boolean
	if ledger.invented_number(clause, quotes) ~= nil then
		return false
	end
	local words = similarity.words(clause)
	return #words == 0 or similarity.shared_words(clause, quotes) >= TOLD * #words
end

--- How answers begin that say nothing.
local KNOWS_NOT =
	"^(i )?(do not|don'?t|dont|didn'?t|can'?t|cannot|cant) (know|say)|^(no|not an?y?) idea|^otherwise dont know|^(je )?(ne )?sais pas|^aucune idée"
--- The fewest words of a piece without a figure that says something by itself.
local FEWEST = 3

--- Returns what a note says by itself: of an answer that stands behind its question, the answer, where it has words enough; nothing
--- where it says that they do not know.
local function own_words(note: string): string?
	local answer = string.match(note, "%? → (.+)$")
	if answer == nil then
		return note
	elseif text.search(text.fold(answer), KNOWS_NOT) ~= nil then
		return nil
	end
	return if #similarity.words(answer) >= FEWEST then answer else note
end

--- Whether a clause says something by itself: one that leads to the next does not, nor one of a word or two.
local function says_something(clause: string): boolean
	return string.find(clause, ":$") == nil and (#similarity.words(clause) >= FEWEST or string.find(clause, "%d") ~= nil)
end

--- Returns what the user said that no quote tells, in their words.
local function passed_over(self: app.App, facts: { Fact }, gone: { string }): { Fact }
	local found: { Fact } = {}
	for _, entry in ledger.holding(self.book, nil, KINDS) do
		local quotes = list.filter(facts, function(fact): boolean
			return fact.quote ~= nil and (ledger.is_said(fact.quote, entry.text) or ledger.is_said(entry.text, fact.quote))
		end)
		local told = table.concat(
			list.map(quotes, function(fact): string
				return fact.quote or ""
			end),
			"\n"
		)
		local own = own_words(entry.text)
		local pieces: { string } = if own ~= nil then left_of(own, gone) else {}
		for _, piece in pieces do
			local parts: { string } = if #quotes > 0 then list.filter(clauses(piece), says_something) else { piece } :: { string }
			for _, part in parts do
				-- A question of theirs is no fact, unless there is a figure in it.
				local asks = string.find(part, "%?$") ~= nil and string.find(part, "%d") == nil
				if not asks and (#quotes == 0 or not is_told(part, told)) then
					table.insert(found, { text = (string.gsub(part, "[,;:]$", "")) })
				end
			end
		end
	end
	return found
end

--- Returns all that holds: what a writer told, as far as its quotes are the user's and hold, and what it passed over.
function known.facts(self: app.App, told: { app.Values }): { Fact }
	local gone = known.taken_back(self)
	local said = table.concat(
		list.map(ledger.holding(self.book, nil, KINDS), function(entry): string
			return entry.text
		end),
		"\n"
	)
	local facts: { Fact } = json.array({} :: { Fact })
	for _, item in told do
		local line = app.to_line(item.text)
		local quote = if item.quote == "" then line else item.quote
		local holds = ledger.is_said(quote, said)
			and not list.some(gone, function(words): boolean
				return ledger.is_said(quote, words) or ledger.is_said(words, quote)
			end)
		if holds then
			-- A figure that nobody said is taken out with the words around it: the user's own stand in their place.
			local invented = ledger.invented_number(line, `{said}\n{self.doc.requestText}`) ~= nil
			table.insert(facts, { text = if invented then quote else line, quote = quote })
		end
	end
	for _, fact in passed_over(self, facts, gone) do
		table.insert(facts, fact)
	end
	return facts
end

return known
