--!strict
--- What the user said and still holds, sentence by sentence, without what was taken back of it: so nothing that was said is lost, and
--- nothing that was taken back comes back.

local app = require("./app")
local ledger = require("../common/ledger")
local list = require("../common/list")
local session = require("./session")
local shape = require("../common/shape")
local similarity = require("../common/similarity")
local text = require("@nietz/text")

local known = {}

export type Fact = session.Fact
--- A clause of the user's, and the sentence that it stands in, without what was taken back.
export type Clause = { text: string, within: string }

local KINDS = { "context", "answer", "remark", "fact" }
--- What a piece begins or ends with once something was cut out of it.
local LOOSE = { "^[%s,;:%.]+", "[%s,;:]+$", "^and%s+", "^but%s+", "^et%s+", "^mais%s+", "%s+and$", "%s+but$", "%s+et$", "%s+mais$" }

--- Returns the words that the user took back: what they struck, and what the writer found, where later words of theirs say so.
function known.taken_back(self: app.App): { string }
	return list.map(self.doc.nietz.takenBack or {} :: { app.Values }, function(item: app.Values): string
		return item.quote
	end)
end

--- Whether words stand behind others in one text, as in "for two, no, for one".
local function stands_behind(by: string, quote: string, place: string): boolean
	local whole = ledger.plain(place)
	local _, last = string.find(whole, ledger.plain(quote), 1, true)
	return last ~= nil and ledger.is_said(by, string.sub(whole, last + 1))
end

--- Whether later words of the user (`by`) come after earlier ones (`quote`).
local function is_later(self: app.App, quote: string, by: string): boolean
	local first: number? = nil
	for _, entry in self.book.entries do
		if first == nil and ledger.is_said(quote, entry.text) then
			first = entry.id
			if stands_behind(by, quote, entry.text) then
				return true
			end
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

--- Whether the user said anything since it was asked last what their later words replaced.
function known.is_unread(self: app.App): boolean
	return self.looked_until < self.book.last
end

--- Takes back what a model found to be replaced in all that the user said so far; nothing where it was not asked.
function known.read_replaced(self: app.App, found: { app.Values }?)
	if found ~= nil then
		self.looked_until = self.book.last
		known.take_back(self, found)
	end
end

--- Asks what of the user's words their later ones replaced, where they said anything since it was asked last; a small mind is not asked.
function known.find_replaced(self: app.App)
	if app.is_small(self, self.moderator) or not known.is_unread(self) then
		return
	end
	local value = app.ask_model(self, {
		prompt = "replaced",
		vars = {},
		schema = shape.object({ "taken_back" }, { taken_back = known.TAKEN_BACK }),
		persona = self.moderator,
		label = self.t("label.replaced"),
		purpose = "council",
		temperature = 0.2,
		small = false,
	})
	known.read_replaced(self, if value ~= nil then value.taken_back else {})
end

--- Words that hold no longer, each with the later ones that say so.
known.TAKEN_BACK = shape.list(shape.object({ "quote", "by" }, { quote = shape.text(2), by = shape.text(2) }), 0, 60) :: shape.Shape

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

--- Words with which no sentence begins or ends that is whole.
local TORN =
	"^(as|that|which|who|to|of|by|at|for|with|than|que|qui|de|à|pour|avec)\\b|\\b(as|to|of|by|at|for|with|than|the|a|is|are|be|que|de|à|le|la|les|pour|avec|est|sont)$"

--- Whether a piece lost its beginning or its end.
local function is_torn(piece: string): boolean
	local plain = string.gsub(text.fold(piece), "[%s%p]+$", "")
	return text.search(plain, TORN) ~= nil
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
		if string.find(piece, "%d") ~= nil then
			return true
		end
		-- What a cut leaves of a clause is no clause where it lost its beginning or its end.
		return #similarity.words(piece) > 0 and not (was_cut and is_torn(piece))
	end)
end

--- Returns the clauses of a sentence. A comma between digits ends none.
local function clauses(sentence: string): { string }
	local marked = string.gsub(sentence, "([,;:])%s+", "%1\n")
	marked = string.gsub(string.gsub(marked, "%s+[–—]%s+", "\n"), "%s+%-%s+", "\n")
	local found: { string } = {}
	local before = ""
	for _, line in text.lines(marked) do
		local clause = text.trim(line)
		local open = if before ~= "" then `{before} {clause}` else clause
		-- A word by itself names what the next clause is about.
		local is_short = #similarity.words(open) < 2 and string.find(open, "%d") == nil
		if not is_short then
			table.insert(found, open)
		end
		before = if is_short then open else ""
	end
	if before ~= "" and #found > 0 then
		found[#found] = `{found[#found]} {before}`
	elseif before ~= "" then
		table.insert(found, before)
	end
	return found
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

--- Whether a clause says something by itself: one that leads to the next does not, nor one of a word or two, nor a question of theirs,
--- unless there is a figure in it.
local function says_something(clause: string): boolean
	if string.find(clause, "%d") ~= nil then
		return true
	end
	return string.find(clause, "[:%?]$") == nil and #similarity.words(clause) >= FEWEST
end

--- Returns the sentences of the user that hold: what they said, and what stands in the request beside its question.
local function sentences(self: app.App): { string }
	local asked = ledger.sentences(self.doc.requestText)
	local found = list.filter(asked, function(sentence): boolean
		return #asked > 1 and string.find(sentence, "%?$") == nil
	end)
	for _, entry in ledger.holding(self.book, nil, KINDS) do
		table.insert(found, own_words(entry.text) or "")
	end
	return found
end

--- Returns the words by which the user took others back, one text.
local function words_that_take_back(self: app.App): string
	local found: { string } = {}
	local taken_back: { app.Values } = self.doc.nietz.takenBack or {} :: { app.Values }
	for _, item in taken_back do
		table.insert(found, item.by or "")
	end
	return table.concat(found, "\n")
end

--- How many words may take others back and say nothing else.
local TAKING = 4

--- Whether a clause can be one that only takes others back: few words, without a figure or a name.
local function takes_alone(clause: string): boolean
	return #similarity.words(clause) <= TAKING and string.find(clause, "%d") == nil and string.find(clause, "%s%u") == nil
end

--- Returns what the user said that holds, clause by clause. What only takes other words back ("no, for one") says nothing alone.
function known.clauses(self: app.App): { Clause }
	local gone = known.taken_back(self)
	local taking = words_that_take_back(self)
	local found: { Clause } = {}
	for _, sentence in sentences(self) do
		for _, piece in left_of(sentence, gone) do
			local parts = list.filter(clauses(piece), says_something)
			-- A piece of which no clause stands alone is told as a whole, but for a question, or one of a single word.
			if #parts == 0 and string.find(piece, "%?$") == nil and #similarity.words(piece) > 1 then
				parts = { piece }
			end
			for _, part in parts do
				if not (ledger.is_said(part, taking) and takes_alone(part)) then
					table.insert(found, { text = part, within = piece })
				end
			end
		end
	end
	return found
end

--- Returns all that may be cited in an answer as it is: what the user said and holds, files, and the day.
function known.said(self: app.App): string
	local gone = known.taken_back(self)
	local today = app.today(self)
	-- A day that was said without its year is of this one or of the next.
	local lines: { string } = { today, tostring((tonumber(string.sub(today, 1, 4)) or 0) + 1) }
	for _, entry in ledger.holding(self.book, nil, KINDS) do
		for _, piece in left_of(entry.text, gone) do
			table.insert(lines, piece)
		end
	end
	for _, piece in left_of(self.doc.requestText, gone) do
		table.insert(lines, piece)
	end
	for _, file in self.files do
		table.insert(lines, file.text)
	end
	for _, line in self.cited do
		table.insert(lines, `{line.number} {line.text}`)
	end
	return table.concat(lines, "\n")
end

--- A sentence of the user's that holds, and the id of what it was said in; none where it stands in the request.
export type Sentence = { id: string, text: string }

--- Returns the sentences of the user that hold and say something, without what was taken back of them.
function known.sentences(self: app.App): { Sentence }
	local found: { Sentence } = {}
	local seen: { [string]: boolean } = {}
	for _, clause in known.clauses(self) do
		if not seen[clause.within] then
			seen[clause.within] = true
			local entry = list.find(self.book.entries, function(one): boolean
				return string.find(one.text, clause.within, 1, true) ~= nil
			end)
			table.insert(found, { id = if entry ~= nil then `U{entry.id}` else "", text = clause.within })
		end
	end
	return found
end

--- Returns what the user said and holds as facts in their words.
function known.in_their_words(self: app.App): { Fact }
	return list.map(known.sentences(self), function(sentence): Fact
		return { text = (string.gsub(sentence.text, "[,;:]$", "")) }
	end)
end

return known
