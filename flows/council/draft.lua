--!strict
--- An answer while a large mind makes it: one memo in Markdown with marks of what it rests on, what it is checked by, and what the host
--- finds wrong with it. The host judges only what it can know: figures and quotes that nobody said, and what is not told in any words.

local app = require("./app")
local dates = require("../common/dates")
local document = require("../common/document")
local figures = require("../common/figures")
local json = require("@nietz/json")
local known = require("./known")
local ledger = require("../common/ledger")
local list = require("../common/list")
local marked = require("../common/marked")
local presence = require("../common/presence")
local session = require("./session")
local similarity = require("../common/similarity")
local sources = require("./sources")
local text = require("@nietz/text")

local draft = {}

--- An answer as a large mind wrote it, with its marks; `decision` is what is done, for the record.
export type Memo = { title: string, decision: string, text: string }
--- A memo by its headings, each called by its own; what stands before the first is called `BEGINNING`.
type Parts = { order: { string }, headings: { [string]: string }, text: document.Document }
--- A sentence of the user's that a memo does not tell, and which of its figures and names it lacks where it tells the rest.
export type Untold = { source: document.Source, lacks: { string } }

--- How many words a memo has.
draft.LEAST_WORDS, draft.WORDS = 700, 1200
--- The most letters of a title.
draft.TITLE = 140
local BEGINNING = "beginning"
--- How many of the words of a sentence, and of each of its clauses, a memo has that tells it; and where it does not cite it.
local SHARED, SHARED_UNCITED = 0.35, 0.6
--- A figure from here on that nobody said is no limit that a memo proposes: a statement with it that rests on nothing goes.
local GREAT = 1000

--- Returns the memo of a model's reply. A heading of the whole is its title, and stands there already.
function draft.memo(value: app.Values): Memo
	return {
		title = app.to_line(marked.plain(value.title)),
		decision = app.to_line(value.decision),
		text = text.trim((string.gsub(text.trim(value.memo), "^#%s+[^\n]*", ""))),
	}
end

--- Returns a memo by its headings.
local function parts_of(markdown: string): Parts
	local parts: Parts = { order = {}, headings = {}, text = {} }
	for _, part in marked.parts(markdown) do
		local name = if part.heading ~= "" then marked.plain(part.heading) else BEGINNING
		while parts.text[name] ~= nil do
			name ..= " "
		end
		table.insert(parts.order, name)
		parts.headings[name], parts.text[name] = part.heading, part.body
	end
	return parts
end

--- Returns a memo in one text again.
local function joined(parts: Parts): string
	local found: { string } = {}
	for _, name in parts.order do
		local heading, body = parts.headings[name], parts.text[name]
		if heading ~= "" then
			table.insert(found, `## {heading}`)
		end
		if body ~= "" then
			table.insert(found, body)
		end
	end
	return table.concat(found, "\n\n")
end

--- Returns all that was said by anybody, for quotes.
local function all_said(self: app.App): string
	local lines = list.map(self.book.entries, function(entry): string
		return entry.text
	end)
	table.insert(lines, self.doc.requestText)
	for _, turn in self.doc.messageTurns do
		table.insert(lines, turn.content)
	end
	for _, option in self.doc.metadata.options do
		table.insert(lines, `{session.name_of(option)}\n{option.text}`)
	end
	for _, file in self.files do
		table.insert(lines, file.text)
	end
	return table.concat(lines, "\n")
end

--- What was assumed or left open in place of an answer, and the words of it that a memo tells.
type Left = { part: string, text: string, clause: string }

--- Returns what was assumed or left open in place of answers.
local function left_questions(self: app.App): { Left }
	local found: { Left } = {}
	for _, question in self.doc.clarificationQuestions do
		local default = question.suggestedDefault
		if question.status == "skipped" and default ~= nil then
			table.insert(found, {
				part = "assumptions",
				text = self.t("assume.told", { default = default, question = question.question }),
				clause = default,
			})
		elseif question.status == "skipped" or question.status == "deferred" then
			table.insert(found, { part = "open", text = question.question, clause = question.question })
		end
	end
	return found
end

--- Returns those of them of which a memo says nothing.
local function untold_questions(self: app.App, markdown: string): { Left }
	local plain = marked.plain(markdown)
	return list.filter(left_questions(self), function(left): boolean
		return similarity.shared_words(left.clause, plain) < 0.5 * #similarity.words(left.clause)
	end)
end

--- How people say that they do not know, in the languages of the flows.
local NOT_KNOWN = { "i don't know", "i do not know", "no idea", "je ne sais pas", "aucune idee" }

--- Whether a sentence says more than that somebody does not know.
local function says_something(sentence: string): boolean
	local folded = string.gsub(text.fold(sentence), "’", "'")
	for _, phrase in NOT_KNOWN do
		local first, last = string.find(folded, phrase, 1, true)
		if first ~= nil and last ~= nil then
			local rest = `{string.sub(folded, 1, first - 1)} {string.sub(folded, last + 1)}`
			return string.find(rest, "%d") ~= nil or #similarity.words(rest) > 2
		end
	end
	return true
end

--- Returns what a memo with these parts is checked by.
local function basis_of(self: app.App, parts: Parts): document.Basis
	local found: { document.Source } = {}
	for _, sentence in known.sentences(self) do
		table.insert(found, { id = sentence.id, words = sentence.text, wanted = says_something(sentence.text) })
	end
	for _, entry in self.book.entries do
		table.insert(found, { id = `U{entry.id}`, words = entry.text, wanted = false })
	end
	for _, point in self.points do
		table.insert(found, { id = point.id, words = point.text, wanted = false })
	end
	return {
		sources = found,
		said = known.said(self),
		gone = table.concat(known.taken_back(self), "\n"),
		sections = parts.order,
		heads = if parts.text[BEGINNING] ~= nil then { BEGINNING } else {},
		title = `{self.doc.requestText}\n{self.doc.metadata.topic or ""}`,
		suggested = self.t("answer.suggested"),
		words = draft.WORDS,
		follows = true,
	}
end

--- Returns what the user said with this id and still holds, or nil.
function draft.source(self: app.App, id: string): document.Source?
	local found = list.find(known.sentences(self), function(sentence): boolean
		return sentence.id == id
	end)
	return if found ~= nil then { id = id, words = found.text, wanted = true } else nil
end

--- Whether a text has this part of some words.
local function shares(words: string, place: string, part: number): boolean
	return similarity.shared_words(words, place) >= part * #similarity.words(words)
end

--- Returns the sentences of the user that hold and that a memo does not tell: by its marks, or by its words.
function draft.untold(self: app.App, memo: Memo): { Untold }
	local parts = parts_of(memo.text)
	local basis = basis_of(self, parts)
	local wanted = list.filter(basis.sources, function(source): boolean
		return source.wanted
	end)
	local names = presence.names_of(list.map(wanted, function(source): string
		return source.words
	end))
	local whole = marked.plain(`{basis.title}\n{memo.title}\n{memo.text}`)
	-- A figure that was taken back need not be told.
	whole ..= `\n{basis.gone}`
	local cites = marked.cites(memo.text)
	local clauses = known.clauses(self)
	local found: { Untold } = {}
	for _, source in wanted do
		local is_cited = source.id ~= "" and table.find(cites, source.id) ~= nil
		local is_told = shares(source.words, whole, if is_cited then SHARED else SHARED_UNCITED)
		for _, clause in clauses do
			is_told = is_told and (clause.within ~= source.words or shares(clause.text, whole, SHARED))
		end
		if not is_told then
			table.insert(found, { source = source, lacks = {} })
		else
			local lacks = presence.lacking(source.words, whole, names)
			if #lacks > 0 then
				table.insert(found, { source = source, lacks = lacks })
			end
		end
	end
	return found
end

--- Returns the longer quotes of a line.
local function quotes_of(line: string): { string }
	local found: { string } = {}
	local plain = string.gsub(string.gsub(line, "[\226][\128][\156\157]", '"'), "«%s*", '"')
	plain = string.gsub(plain, "%s*»", '"')
	for quote in string.gmatch(plain, '"([^"]+)"') do
		if #similarity.words(quote) >= 4 then
			table.insert(found, quote)
		end
	end
	return found
end

--- How a sentence says that somebody said what it quotes: the words of a letter, or of what is to be asked, are nobody's yet.
local ATTRIBUTES =
	"\\b(said|says|wrote|writes|told us|told you|you say|you call|in your words|avez dit|a dit|dites|ecrit|ecrivez|disiez|vos mots|selon vous)\\b"

--- Returns what is wrong with a memo as it stands, in the words in which its writer is told.
function draft.faults(self: app.App, memo: Memo): { document.Fault }
	local parts = parts_of(memo.text)
	local basis = basis_of(self, parts)
	local found = document.faults(parts.text, basis)
	local function add(section: string, why: string)
		table.insert(found, { section = section, why = why })
	end
	for _, left in untold_questions(self, memo.text) do
		add("all", `it says nothing of what was left out when it was asked: {left.text}`)
	end
	local their_days, today = known.said(self), app.today(self)
	-- Only where days of theirs fit this clock, and would not fit that of another year, it is known of which year they speak.
	local later = string.gsub(today, "^%d+", function(year): string
		return tostring((tonumber(year) or 0) + 1)
	end)
	local is_our_clock = #dates.wrong_weekdays(their_days, today, "") == 0 and #dates.wrong_weekdays(their_days, later, "") > 0
	local dated: { string } = if is_our_clock then basis.sections else {}
	for _, section in dated do
		for _, one in dates.wrong_weekdays(marked.plain(parts.text[section]), today, their_days) do
			local right = string.split(self.t("weekdays"), " ")[one.right]
			add(section, `"{one.written}" is a {right}: name the right day, or leave the weekday out`)
		end
	end
	local said = all_said(self)
	local asks, third = ledger.plain(self.doc.requestText), self.t("answer.third_person")
	for _, section in basis.sections do
		for _, unit in marked.units(parts.text[section]) do
			local is_attributed = text.search(text.fold(unit.text), ATTRIBUTES) ~= nil
			local quotes: { string } = if is_attributed then quotes_of(unit.text) else {}
			for _, quote in quotes do
				if not ledger.is_said(quote, said) then
					add(section, `nobody said these words: "{quote}"`)
				end
			end
			if ledger.stands_in(third, ledger.plain(unit.text)) and not ledger.stands_in(third, asks) then
				add(section, `it speaks of them and not to them: "{unit.text}"`)
			end
		end
	end
	return found
end

--- Returns a memo as who mends and who reviews it reads it, with its marks.
function draft.told(memo: Memo): string
	return `Title: {memo.title}\n\n{memo.text}`
end

--- Returns a memo in which nothing stands as said that nobody said, and the figures in it that nobody said and that stay: nobody can
--- tell a limit that it proposes from a figure that it makes up.
local function cleaned(self: app.App, memo: Memo): (string, { session.Figure })
	local parts = parts_of(memo.text)
	local kept: { session.Figure } = json.array({} :: { session.Figure })
	local edits: { document.Edit } = {}
	for _, one in document.unfounded(parts.text, basis_of(self, parts)) do
		local is_great = list.some(one.figures, function(written): boolean
			return figures.of(written)[1].value >= GREAT
		end)
		-- A row is a part of what its table says as a whole, and what works something out shows how.
		local has_sum = text.search(one.unit.text, "[0-9] *[×*/+−=] *[0-9]") ~= nil
		local works_out = has_sum and #figures.wrong_sums(one.unit.text) == 0
		if not one.unit.is_row and (#one.stale > 0 or (is_great and #one.unit.cites == 0 and not works_out)) then
			table.insert(edits, { section = one.section, unit = one.unit })
			continue
		end
		local to_check: { string } = if works_out then {} else one.figures
		for _, written in to_check do
			table.insert(kept, { figure = written, how = one.unit.text })
		end
	end
	parts.text = document.edited(parts.text, edits)
	-- Of a part of which nothing is left its heading goes, too.
	local whole = parts_of(memo.text)
	parts.order = list.filter(parts.order, function(name): boolean
		return text.trim(parts.text[name]) ~= "" or whole.text[name] == ""
	end)
	return joined(parts), kept
end

--- Returns a memo in which what was assumed or left open in place of an answer stands, where its writer did not tell it.
local function with_left_questions(self: app.App, markdown: string): string
	local out = markdown
	for _, part in { "assumptions", "open" } do
		local lines: { string } = {}
		for _, left in untold_questions(self, out) do
			if left.part == part then
				table.insert(lines, `- {left.text}`)
			end
		end
		if #lines > 0 then
			out = `{out}\n\n## {self.t(`heading.{part}`)}\n\n{table.concat(lines, "\n")}`
		end
	end
	return out
end

--- Returns a memo as it is read: without marks, and with nothing in it that could do more than be read.
function draft.shown(markdown: string): string
	local parts = parts_of(markdown)
	for _, name in parts.order do
		parts.headings[name] = marked.inert(marked.plain(parts.headings[name]))
		parts.text[name] = marked.inert(marked.plain(parts.text[name]))
	end
	return joined(parts)
end

--- Puts questions that were left open among what is open.
function draft.keep_open(self: app.App, made: session.Decision)
	local open: { session.Point } = table.clone(made.open or {} :: { session.Point })
	for _, left in left_questions(self) do
		if left.part == "open" then
			table.insert(open, { text = left.text, from = made.decision.from })
		end
	end
	made.open = if #open > 0 then json.array(open) else nil
end

--- Keeps a memo as a decision has it: as it is read, what its statements rest on, and what of the user's it does not tell. `missed` are
--- sentences of theirs that its reader missed.
function draft.keep(self: app.App, made: session.Decision, memo: Memo, missed: { document.Source })
	local clean, kept = cleaned(self, memo)
	local whole = with_left_questions(self, clean)
	local parts = parts_of(whole)
	local basis = basis_of(self, parts)
	made.memo = draft.shown(whole)
	made.title = if memo.title ~= "" then memo.title else nil
	made.decision = sources.point(self, app.to_line(marked.plain(memo.decision)), marked.cites(memo.decision))
	made.figures = if #kept > 0 then kept else nil
	local rests: { session.Rest } = {}
	for _, rest in document.rests(parts.text, basis) do
		local point = sources.point(self, rest.text, rest.from)
		if #point.from > 0 or point.facts ~= nil or point.cites ~= nil then
			table.insert(
				rests,
				{ section = text.trim(rest.section), text = point.text, from = point.from, facts = point.facts, cites = point.cites }
			)
		end
	end
	made.rests = json.array(rests)
	local left: { session.LeftOut } = {}
	for _, one in draft.untold(self, { title = memo.title, decision = memo.decision, text = whole }) do
		local is_missed = list.some(missed, function(source): boolean
			return source.id == one.source.id
		end)
		local what = if #one.lacks > 0
			then self.t("left_out.lacks", { what = table.concat(one.lacks, ", ") })
			else self.t("left_out.untold")
		local why = self.t(if is_missed then "left_out.missed" else "left_out.judged", { what = what })
		table.insert(left, { text = one.source.words, why = why, missed = if is_missed then true else nil })
	end
	made.leftOut = if #left > 0 then json.array(left) else nil
	draft.keep_open(self, made)
end

return draft
