--!strict
--- An answer while a large mind makes it: marked Markdown by sections, what it is checked by, and what the host finds wrong with it.
--- The host judges only what it can know: what of the user's is told nowhere, figures and quotes that nobody said.

local app = require("./app")
local document = require("../common/document")
local known = require("./known")
local ledger = require("../common/ledger")
local list = require("../common/list")
local marked = require("../common/marked")
local session = require("./session")
local similarity = require("../common/similarity")
local sources = require("./sources")
local text = require("@nietz/text")

local draft = {}

--- What of the user's nothing else tells, in their words.
draft.REST = "known"
--- The sections of an answer, in the order in which a moderator thinks of them: what is read first is written last.
draft.DECIDED = { "why", "weighed", "dissent", "change", "assumptions", "open", "steps", "sinks", "asked", "context", "table", "decision" }
--- How many words an answer has.
draft.LEAST_WORDS, draft.WORDS = 750, 1100
--- Those of one that decides nothing.
draft.UNDECIDED = { "open", "steps", "context", "decision" }
--- The sections below the decision, as they are read.
draft.SHOWN = { "table", "asked", "sinks", "context", "why", "weighed", "dissent", "change", "assumptions", "open", "steps", draft.REST }
--- The sections that say in short what others say.
local HEADS = { "table", "decision" }

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

--- Returns what was assumed or left open in place of an answer, each with the section where it belongs.
function draft.left_questions(self: app.App): { { part: string, text: string, clause: string } }
	local found: { { part: string, text: string, clause: string } } = {}
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

--- Returns what an answer with these sections is checked by.
function draft.basis(self: app.App, sections: { string }): document.Basis
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
	local gone = table.concat(known.taken_back(self), "\n")
	local title = `{self.doc.requestText}\n{self.doc.metadata.topic or ""}`
	return {
		sources = found,
		said = known.said(self),
		gone = gone,
		sections = sections,
		heads = HEADS,
		title = title,
		suggested = self.t("answer.suggested"),
		words = draft.WORDS,
	}
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

--- Returns the options that a section does not name, of those that somebody could still choose.
local function unnamed_options(self: app.App, made: session.Decision, weighed: string): { string }
	local folded = text.fold(weighed)
	local chosen = list.find(self.doc.metadata.options, function(option): boolean
		return option.id == made.option
	end)
	local parts: { string } = if chosen then chosen.from or {} else {}
	local found: { string } = {}
	for _, option in app.open_options(self) do
		local name = session.name_of(option)
		local is_there = option.id == made.option or table.find(parts, option.id) ~= nil
		if not is_there and string.find(folded, text.fold(name), 1, true) == nil then
			table.insert(found, name)
		end
	end
	return found
end

--- Returns what is wrong with an answer as it stands, in the words in which its writer is told.
function draft.faults(self: app.App, made: session.Decision, answer: document.Document, basis: document.Basis): { document.Fault }
	local found = document.faults(answer, basis)
	local function add(section: string, why: string)
		table.insert(found, { section = section, why = why })
	end
	for _, left in draft.left_questions(self) do
		local place = if answer[left.part] ~= nil then answer[left.part] else answer.open or ""
		if similarity.shared_words(left.clause, place) < 0.5 * #similarity.words(left.clause) then
			add(left.part, `it says nothing of what was left out when it was asked: {left.text}`)
		end
	end
	if answer.weighed ~= nil then
		for _, name in unnamed_options(self, made, answer.weighed) do
			add("weighed", `it does not name "{name}"`)
		end
	end
	local said = all_said(self)
	local asks, third = ledger.plain(self.doc.requestText), self.t("answer.third_person")
	for _, section in basis.sections do
		for _, unit in marked.units(answer[section] or "") do
			for _, quote in quotes_of(unit.text) do
				-- A step has the words of what is to be decided, or asked.
				if section ~= "steps" and not ledger.is_said(quote, said) then
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

--- Returns an answer as who mends and who reviews it reads it: its sections by their names, with their marks.
function draft.told(answer: document.Document, sections: { string }): string
	local parts: { string } = {}
	for _, section in sections do
		if (answer[section] or "") ~= "" then
			table.insert(parts, `{section}:\n{answer[section]}`)
		end
	end
	return table.concat(parts, "\n\n")
end

--- Adds a line to a section: as an item of its list, or as a paragraph.
function draft.add(answer: document.Document, section: string, line: string, is_item: boolean)
	local before = answer[section] or ""
	local lead = if is_item then "- " else ""
	local is_list = is_item and string.find(before, "[%-%*] [^\n]*$") ~= nil
	answer[section] = if before == "" then lead .. line elseif is_list then `{before}\n{lead}{line}` else `{before}\n\n{lead}{line}`
end

--- Returns an answer that is made whole by the host's own means, where nobody mended it: what has a figure that nobody said is taken
--- out, and what of the user's is told nowhere stands at its end, in their words. Of sources that are `left` nothing need be told.
function draft.close(self: app.App, raw: document.Document, basis: document.Basis, left: { document.Source }): document.Document
	local answer = document.clean(raw, basis)
	local untold: { string } = {}
	for _, source in document.untold(answer, basis) do
		local words = string.gsub(string.gsub(source.words, " → ", " "), "^%l", string.upper)
		local line = `“{words}{if string.find(words, "[%.!%?…]$") ~= nil then "" else "."}”`
		if table.find(left, source) == nil and table.find(untold, line) == nil then
			table.insert(untold, line)
		end
	end
	answer[draft.REST] = table.concat(untold, " ")
	for _, question in draft.left_questions(self) do
		local part = if table.find(basis.sections, question.part) ~= nil then question.part else "open"
		if similarity.shared_words(question.clause, answer[part] or "") < 0.5 * #similarity.words(question.clause) then
			draft.add(answer, part, question.text, true)
		end
	end
	return answer
end

--- Keeps an answer as a decision has it: its sections as they are read, and what each statement rests on.
function draft.keep(self: app.App, made: session.Decision, answer: document.Document, basis: document.Basis)
	local all = table.clone(basis.sections)
	table.insert(all, draft.REST)
	local shown = document.shown(answer, all)
	local decision = (string.gsub(shown.decision or "", "%s*\n+%s*", " "))
	local whole = if decision ~= "" then decision else app.option_text(self, made.option)
	made.decision = sources.point(self, whole, marked.cites(answer.decision or ""))
	local kept: { session.Section } = {}
	for _, section in draft.SHOWN do
		if (shown[section] or "") ~= "" then
			table.insert(kept, { name = section, text = shown[section] })
		end
	end
	made.sections = kept
	local rests: { session.Rest } = {}
	for _, rest in document.rests(answer, basis) do
		local point = sources.point(self, rest.text, rest.from)
		if #point.from > 0 or point.facts ~= nil or point.cites ~= nil then
			table.insert(rests, { section = rest.section, text = point.text, from = point.from, facts = point.facts, cites = point.cites })
		end
	end
	made.rests = rests
end

return draft
