--!strict
--- What is known of the bug so far: what the developer saw, what they believe, what they ruled out, and which beliefs are to be
--- told apart (`nietz.ledger` of a session). Nothing in it is the model's: a model says which of the developer's words are what,
--- and words that stand nowhere in what they said or showed are dropped and counted. So all of it counts as said by them.

local app = require("./app")
local beliefs = require("./beliefs")
local common = require("../common/ledger")
local intent = require("./intent")
local json = require("@nietz/json")
local list = require("../common/list")
local markdown = require("../common/markdown")
local text = require("@nietz/text")

local ledger = {}

export type Entry = {
	--- `k1`, `k2` …, the same wherever the entry is moved to.
	id: string,
	--- The turn in which it was said; 0 is the problem.
	turn: number,
	--- The developer's own words.
	quote: string,
	--- Where these words stand in what they showed, as `src/price.py:12`.
	evidence: string?,
	--- Of a belief: `unchecked` or `contradicted`, and the ids of the beliefs that it takes for granted.
	weak: string?,
	rests_on: { string }?,
	--- The words by which it was moved, and the turn in which they were said.
	by: string?,
	moved: number?,
	--- How it was put before it was put more exactly.
	formerly: { string }?,
	--- How many questions have gone for it.
	asked: number?,
}
--- Two beliefs that cannot both hold.
export type Pair = { id: string, turn: number, one: string, other: string }
export type Ledger = {
	seen: { Entry },
	believed: { Entry },
	ruled_out: { Entry },
	open: { Pair },
	--- What was settled long ago, in one line.
	folded: { count: number, line: string }?,
	--- How many entries were dropped, because their words stand nowhere.
	dropped: number,
	--- The number of the last id.
	last: number,
}

--- What a model says that a response adds and changes.
export type Changes = { entries: { NewEntry }?, moved: { Move }?, apart: { Side }? }
type NewEntry = { what: string, quote: string, rests_on: { string }? }
type Move = { id: string, to: string, quote: string }
type Side = { one: string, other: string }

--- What the next question goes for: a belief that nobody has checked, one that something speaks against, or two to tell apart.
export type Target = { kind: "unchecked" | "contradicted" | "apart", one: Entry, other: Entry? }

--- How many settled entries a model reads.
local LATELY_SETTLED = 3
--- How many entries are kept of what is settled, of what is believed, and how many pairs.
local MOST_SETTLED, MOST_BELIEVED, MOST_PAIRS = 8, 10, 4
--- The longest line of what was folded, in bytes, and the longest quote, in letters.
local MOST_FOLDED, LONGEST_QUOTE = 400, 240
--- The longest answer in which a quote is looked for otherwise than to the letter, in bytes.
local LONGEST_SAID = 20_000
--- After so many questions for one thing, the next thing comes first.
local ASKED_ENOUGH = 2

--- Returns the ledger of a session, or nil while nothing stands in it.
function ledger.of(self: app.App): Ledger?
	return self.doc.nietz.ledger
end

local function begun(self: app.App): Ledger
	local own = self.doc.nietz
	if own.ledger == nil then
		local empty: Ledger =
			{ seen = json.array({}), believed = json.array({}), ruled_out = json.array({}), open = json.array({}), dropped = 0, last = 0 }
		own.ledger = empty
	end
	return own.ledger
end

--- The marks that models put around a quote, and those at its end.
local AROUND = { '"', "'", "`", "“", "”", "«", "»", " " }
local BEHIND = { ".", ",", ";", "…" }

--- Returns a quote without such marks.
local function unquoted(value: string): string
	local rest = value
	repeat
		local before = rest
		for _, mark in AROUND do
			if string.sub(rest, 1, #mark) == mark then
				rest = string.sub(rest, #mark + 1)
			end
		end
		for _, marks in { AROUND, BEHIND } do
			for _, mark in marks do
				if string.sub(rest, -#mark) == mark then
					rest = string.sub(rest, 1, -#mark - 1)
				end
			end
		end
	until rest == before
	return rest
end

--- Returns a text for comparing.
local function plain(value: string): string
	return unquoted(intent.normalize(value))
end

--- Returns where in the developer's files these words stand: exactly, because a file may be long.
local function place_in_files(self: app.App, quote: string): string?
	for _, file in self.code_files do
		local first = string.find(file.text, quote, 1, true)
		if first ~= nil then
			local _, breaks = string.gsub(string.sub(file.text, 1, first - 1), "\n", "")
			return `{file.name}:{file.numbers[breaks + 1] or breaks + 1}`
		end
	end
	return nil
end

--- Whether the developer said a quote in this text: to the letter, or but for letters' size, accents and spaces, where the text is
--- none that goes on for pages.
local function is_said(quote: string, said: string): boolean
	return common.stands_in(quote, said) or #said <= LONGEST_SAID and common.stands_in(plain(quote), plain(said))
end

--- Returns the turn in which the developer said these words, the last one first, 0 being the problem; nil where they did not.
local function turn_of(self: app.App, quote: string): number?
	local turns = self.doc.transcript
	for index = #turns, 1, -1 do
		if is_said(quote, turns[index].response) then
			return index
		end
	end
	return if is_said(quote, self.doc.problemDescription) then 0 else nil
end

--- Whether words that were said in this turn are a question there.
local function is_asked(self: app.App, quote: string, turn: number): boolean
	local said = if turn == 0 then self.doc.problemDescription else self.doc.transcript[turn].response
	return #said <= LONGEST_SAID and beliefs.is_asked(quote, said)
end

--- Returns a quote as it is kept, its turn, and its place in a file; nil where it stands nowhere.
local function sourced(self: app.App, given: string): (string?, number, string?)
	local quote = unquoted((string.gsub(text.trim(given), "%s+", " ")))
	if #plain(quote) < 2 then
		return nil, 0, nil
	end
	local kept = text.truncate(quote, LONGEST_QUOTE)
	local turn = turn_of(self, quote)
	if turn ~= nil then
		return kept, turn, nil
	end
	local place = place_in_files(self, unquoted(text.trim(given)))
	return if place then kept else nil, #self.doc.transcript, place
end

local function find_by_id(entries: { Entry }, id: string): Entry?
	return list.find(entries, function(entry): boolean
		return entry.id == id
	end)
end

--- Takes an entry out of a list.
local function take_out(entries: { Entry }, entry: Entry)
	table.remove(entries, table.find(entries, entry) :: number)
end

--- Returns an entry with these words, whatever it is.
local function find_by_words(found: Ledger, quote: string): Entry?
	local words = plain(quote)
	for _, entries in { found.seen, found.believed, found.ruled_out } do
		local same = list.find(entries, function(entry): boolean
			return plain(entry.quote) == words
		end)
		if same ~= nil then
			return same
		end
	end
	return nil
end

local function next_id(found: Ledger): string
	found.last += 1
	return `k{found.last}`
end

--- The number of an id: whoever has the smaller one is older.
local function number_of(id: string): number
	return tonumber(string.sub(id, 2)) or 0
end

--- Returns the entry that a model means by an id or by its words, among the beliefs.
local function belief(found: Ledger, named: string): Entry?
	local by_id = find_by_id(found.believed, named)
	if by_id ~= nil then
		return by_id
	end
	local same = find_by_words(found, named)
	return if same ~= nil and find_by_id(found.believed, same.id) ~= nil then same else nil
end

--- Takes away the pairs that have a side which is no belief any more: what it came to stands where that side is now.
local function close_pairs(found: Ledger)
	local left: { Pair } = json.array({})
	for _, pair in found.open do
		if find_by_id(found.believed, pair.one) ~= nil and find_by_id(found.believed, pair.other) ~= nil then
			table.insert(left, pair)
		end
	end
	found.open = left
end

--- Adds an entry. Returns whether it is progress.
local function add(self: app.App, found: Ledger, what: string, given: string, rests_on: { string }?): boolean
	local quote, turn, place = sourced(self, given)
	if quote == nil or (place ~= nil and what == "believed") then
		found.dropped += 1
		return false
	elseif what == "believed" then
		-- Who asks believes nothing yet.
		if is_asked(self, given, turn) then
			return false
		end
		quote = beliefs.bare(quote)
	end
	if find_by_words(found, quote) ~= nil then
		return false
	end
	local entry: Entry = { id = next_id(found), turn = turn, quote = quote, evidence = place }
	if what == "believed" then
		local needed: { string } = json.array({})
		for _, named in rests_on or {} :: { string } do
			local other = belief(found, named)
			if other ~= nil and table.find(needed, other.id) == nil then
				table.insert(needed, other.id)
			end
		end
		entry.weak = "unchecked"
		entry.rests_on = if #needed > 0 then needed else nil
		table.insert(found.believed, entry)
		return false
	end
	table.insert(if what == "seen" then found.seen else found.ruled_out, entry)
	return turn == #self.doc.transcript
end

--- Moves an entry, by words of the last response or of a file. Returns whether that is progress.
local function move(self: app.App, found: Ledger, change: Move): boolean
	local quote, turn, place = sourced(self, change.quote)
	if quote == nil or (place == nil and turn ~= #self.doc.transcript) then
		found.dropped += 1
		return false
	end
	local entry = find_by_id(found.believed, change.id)
	if entry ~= nil then
		if change.to == "narrowed" then
			local formerly: { string } = entry.formerly or json.array({})
			table.insert(formerly, entry.quote)
			entry.formerly, entry.quote, entry.moved = formerly, quote, #self.doc.transcript
			return true
		elseif change.to == "contradicted" then
			entry.weak, entry.by, entry.moved = "contradicted", quote, #self.doc.transcript
			return false
		elseif change.to == "seen" or change.to == "ruled_out" then
			take_out(found.believed, entry)
			entry.weak, entry.by, entry.moved, entry.evidence = nil, quote, #self.doc.transcript, place
			table.insert(if change.to == "seen" then found.seen else found.ruled_out, entry)
			return true
		end
		return false
	end
	-- Whoever goes back on what was settled believes it again, or has seen that it is otherwise.
	for _, settled in { found.seen, found.ruled_out } do
		local back = find_by_id(settled, change.id)
		if back ~= nil and change.to ~= "narrowed" then
			take_out(settled, back)
			back.by, back.moved = quote, #self.doc.transcript
			if change.to == "seen" or change.to == "ruled_out" then
				table.insert(if change.to == "seen" then found.seen else found.ruled_out, back)
			else
				back.weak = if change.to == "contradicted" then "contradicted" else "unchecked"
				table.insert(found.believed, back)
			end
			return false
		end
	end
	found.dropped += 1
	return false
end

--- Folds what is oldest into one line, the ledger being read with every response.
local function fold(found: Ledger, entries: { Entry }, most: number)
	while #entries > most do
		local oldest = table.remove(entries, 1) :: Entry
		local before = found.folded or { count = 0, line = "" }
		local line = if before.line == "" then oldest.quote else `{before.line}; {oldest.quote}`
		found.folded = { count = before.count + 1, line = if #line > MOST_FOLDED then "…" .. string.sub(line, -MOST_FOLDED) else line }
	end
end

--- Takes the changes of a response into the ledger. Returns whether they are progress: something seen, something ruled out, or a
--- belief that is put more exactly.
function ledger.apply(self: app.App, changes: Changes): boolean
	local entries: { NewEntry } = changes.entries or {}
	local moved: { Move } = changes.moved or {}
	local apart: { Side } = changes.apart or {}
	if #entries + #moved + #apart == 0 then
		return false
	end
	local found = begun(self)
	local progress = false
	for _, one in moved do
		progress = move(self, found, one) or progress
	end
	for _, one in entries do
		progress = add(self, found, one.what, one.quote, one.rests_on) or progress
	end
	for _, pair in apart do
		local one, other = belief(found, pair.one), belief(found, pair.other)
		local known = list.some(found.open, function(old): boolean
			return one ~= nil
				and other ~= nil
				and (old.one == one.id and old.other == other.id or old.one == other.id and old.other == one.id)
		end)
		if one == nil or other == nil or one.id == other.id then
			found.dropped += 1
		elseif not known then
			table.insert(found.open, { id = next_id(found), turn = #self.doc.transcript, one = one.id, other = other.id })
		end
	end
	fold(found, found.seen, MOST_SETTLED)
	fold(found, found.ruled_out, MOST_SETTLED)
	fold(found, found.believed, MOST_BELIEVED)
	close_pairs(found)
	while #found.open > MOST_PAIRS do
		table.remove(found.open, 1)
	end
	return progress
end

--- How many beliefs take this one for granted.
local function dependents(found: Ledger, id: string): number
	local count = 0
	for _, entry in found.believed do
		count += if table.find(entry.rests_on or {}, id) ~= nil then 1 else 0
	end
	return count
end

--- Whether what was ruled out is what this is about, in other words.
local function is_ruled_out(found: Ledger, entry: Entry): boolean
	return list.some(found.ruled_out, function(settled): boolean
		return beliefs.is_spoken_of(entry.quote, table.concat({ settled.quote, settled.by or "" }, " "))
	end)
end

--- Returns what could be asked about next, the best first. Nothing of it is ruled out already, in whichever words.
local function candidates(found: Ledger): { Target }
	local unchecked = list.filter(found.believed, function(entry): boolean
		return entry.weak == "unchecked" and not is_ruled_out(found, entry)
	end)
	local needed = list.filter(unchecked, function(entry): boolean
		return dependents(found, entry.id) > 0
	end)
	table.sort(needed, function(one: Entry, other: Entry): boolean
		local first, second = dependents(found, one.id), dependents(found, other.id)
		return if first == second then number_of(one.id) < number_of(other.id) else first > second
	end)
	local targets: { Target } = list.map(needed, function(entry): Target
		return { kind = "unchecked", one = entry }
	end)
	for _, entry in found.believed do
		if entry.weak == "contradicted" and not is_ruled_out(found, entry) then
			table.insert(targets, { kind = "contradicted", one = entry })
		end
	end
	for _, pair in found.open do
		local one, other = find_by_id(found.believed, pair.one), find_by_id(found.believed, pair.other)
		if one ~= nil and other ~= nil then
			table.insert(targets, { kind = "apart", one = one, other = other })
		end
	end
	for _, entry in unchecked do
		table.insert(targets, { kind = "unchecked", one = entry })
	end
	return targets
end

local function times_asked(target: Target): number
	local other = target.other
	return math.max(target.one.asked or 0, if other then other.asked or 0 else 0)
end

--- Whether a response settles a target, as far as can be told before it is read: the question that it answers went for it, or it
--- speaks of the same.
local function may_settle(self: app.App, response: string, target: Target): boolean
	return list.some({ target.one, target.other or target.one }, function(entry: Entry): boolean
		local asked = table.find(self.asked_about, `{target.kind} {entry.id}`) ~= nil
		return asked or beliefs.is_spoken_of(entry.quote, response)
	end)
end

--- Returns what the next question is to go for, or nil: the belief that nobody has checked and most others rest on, then one that
--- something speaks against, then two to tell apart, then the oldest belief. What was asked about twice is left alone, and so is what
--- the response may settle, which is read beside the next question.
function ledger.target(self: app.App, response: string): Target?
	local found = ledger.of(self)
	if found == nil then
		return nil
	end
	return list.find(candidates(found), function(target): boolean
		return times_asked(target) < ASKED_ENOUGH and not may_settle(self, response, target)
	end)
end

--- Returns the developer's words that are weakest, however often they were asked about, or nil. With a response, none that it may
--- settle.
function ledger.weakest(self: app.App, response: string?): string?
	local found = ledger.of(self)
	local first = if found
		then list.find(candidates(found), function(target): boolean
			return response == nil or not may_settle(self, response, target)
		end)
		else nil
	return if first then first.one.quote else nil
end

--- Notes what a question goes for; nil where for nothing in particular.
function ledger.note_asked(self: app.App, target: Target?)
	self.asked_about = {} :: { string }
	if target == nil then
		return
	end
	local function note(entry: Entry)
		entry.asked = (entry.asked or 0) + 1
		table.insert(self.asked_about, `{target.kind} {entry.id}`)
	end
	note(target.one)
	if target.other ~= nil then
		note(target.other)
	end
end

--- Returns the ledger as models read it: an entry a line, with its id. Of what is settled, only the last entries: few answers go
--- back on more.
function ledger.for_prompt(self: app.App): string?
	local found = ledger.of(self)
	if found == nil then
		return nil
	end
	local lines: { string } = {}
	for _, part in { { "seen", found.seen }, { "believed", found.believed }, { "ruled_out", found.ruled_out } } :: { { any } } do
		local entries: { Entry } = part[2]
		for index = if part[1] == "believed" then 1 else math.max(#entries - LATELY_SETTLED + 1, 1), #entries do
			local entry = entries[index]
			local name = if entry.weak == "contradicted" then "contradicted" else part[1]
			table.insert(lines, `{entry.id} {name}: {entry.quote}`)
		end
	end
	for _, pair in found.open do
		table.insert(lines, `{pair.one} or {pair.other}, not both`)
	end
	return if #lines > 0 then table.concat(lines, "\n") else nil
end

--- Returns the ledger as people read it, in the session's language; an empty text where there is none yet.
function ledger.render(self: app.App): string
	local t = self.t
	local lines: { string } = {}
	local found = ledger.of(self)
	if found == nil then
		return ""
	end
	local function place(entry: Entry): string
		return entry.evidence or if entry.turn == 0 then t("ledger.problem") else t("ledger.turn", { turn = entry.turn })
	end
	local function section(name: string, entries: { Entry })
		if #entries > 0 then
			table.insert(lines, `\n**{t(`ledger.{name}`)}**\n`)
		end
		for _, entry in entries do
			local notes = { place(entry) }
			if entry.weak ~= nil then
				table.insert(notes, t(`ledger.weak_{entry.weak}`))
			end
			if entry.by ~= nil and entry.moved ~= nil then
				table.insert(notes, t("ledger.by", { quote = entry.by, turn = entry.moved }))
			end
			table.insert(lines, "- " .. t("ledger.entry", { quote = markdown.literal(entry.quote), notes = table.concat(notes, ", ") }))
		end
	end
	section("seen", found.seen)
	section("believed", found.believed)
	section("ruled_out", found.ruled_out)
	if #found.open > 0 then
		table.insert(lines, `\n**{t("ledger.open")}**\n`)
		for _, pair in found.open do
			local one, other = find_by_id(found.believed, pair.one), find_by_id(found.believed, pair.other)
			if one ~= nil and other ~= nil then
				table.insert(lines, "- " .. t("ledger.or", { one = one.quote, other = other.quote }))
			end
		end
	end
	if found.folded ~= nil then
		table.insert(lines, "\n" .. t("ledger.folded", { count = found.folded.count, line = found.folded.line }))
	end
	return text.trim(table.concat(lines, "\n"))
end

return ledger
