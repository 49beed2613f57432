--!strict
--- An answer while it is made: its parts as the moderator knows them, all its lines, and what the host finds wrong with it. The host
--- judges only what it can know: what of the user's is told nowhere, figures and quotes that nobody said.

local app = require("./app")
local dates = require("../common/dates")
local figures = require("../common/figures")
local json = require("@nietz/json")
local known = require("./known")
local ledger = require("../common/ledger")
local list = require("../common/list")
local session = require("./session")
local similarity = require("../common/similarity")

local draft = {}

--- The parts that are lists, in the order in which they are read: what a moderator calls them, and where a decision has them.
--- Lines of those with `labels` have one.
draft.PARTS = {
	{ name = "glance", field = "glance", labels = true },
	{ name = "sinks", field = "sinks" },
	{ name = "context", field = "context" },
	{ name = "reasons", field = "reasons" },
	{ name = "next_steps", field = "nextSteps" },
	{ name = "tradeoffs", field = "tradeoffs" },
	{ name = "rejected", field = "rejected" },
	{ name = "disputed", field = "disputed", labels = true },
	{ name = "assumptions", field = "assumptions" },
	{ name = "open", field = "open" },
	{ name = "rests_on", field = "known" },
} :: { { name: string, field: string, labels: boolean? } }

--- Something that is to be mended: `F1` and so on. `clauses` where they are of the user's, of one sentence, and told nowhere.
export type Fault = { id: string, text: string, clauses: { known.Clause } }

--- Two lines that share more than this tell the same.
local TOLD_TWICE = 0.8

--- Returns a part of a decision; an empty list where it has none.
function draft.part(made: session.Decision, field: string): { session.Point }
	local values: app.Values = made :: any
	return values[field] or {}
end

--- Returns what stands before a line: the name of an option, or a label.
local function head_of(self: app.App, point: session.Point): string?
	return if point.option ~= nil then app.option_name(self, point.option) else point.label
end

--- Returns all texts of an answer, with what stands before them, and where each stands (`reasons 2`).
local function placed_lines(self: app.App, made: session.Decision): { { place: string, text: string } }
	local found: { { place: string, text: string } } = { { place = "decision", text = made.decision.text } }
	for _, part in draft.PARTS do
		for place, point in draft.part(made, part.field) do
			local head = head_of(self, point)
			local line = if head ~= nil then `{head}: {point.text}` else point.text
			table.insert(found, { place = `{part.name} {place}`, text = line })
		end
	end
	return found
end

--- Returns all texts of an answer, with what stands before them.
function draft.lines(self: app.App, made: session.Decision): { string }
	return list.map(placed_lines(self, made), function(line): string
		return line.text
	end)
end

--- Returns an answer as who mends and who reviews it reads it: each line with its part and its place.
function draft.told(self: app.App, made: session.Decision): string
	local lines: { string } = { `decision: {made.decision.text}` }
	for _, part in draft.PARTS do
		for place, point in draft.part(made, part.field) do
			local head = head_of(self, point)
			table.insert(lines, `{part.name} {place}: {if head ~= nil then `"{head}": ` else ""}{point.text}`)
		end
	end
	return table.concat(lines, "\n")
end

--- Returns the figures that may stand in an answer: those that were said, and its own that follow from them or are proposed.
local function allowed_figures(self: app.App, made: session.Decision): { figures.Figure }
	local all = known.figures(self)
	local own = made.figures or {} :: { session.OwnFigure }
	-- One may follow from another: each is looked at again when more are known.
	for _ = 1, 2 do
		for _, one in own do
			if one.how == "proposed" or figures.follows(one.figure, one.how, all) then
				local found = figures.of(one.figure)
				table.move(found, 1, #found, #all + 1, all)
			end
		end
	end
	-- Sums that stand in the answer itself, and days that are counted from one that was said.
	local told = table.concat(draft.lines(self, made), "\n")
	local worked_out = figures.worked_out(told, all)
	table.move(worked_out, 1, #worked_out, #all + 1, all)
	for _, day in dates.counted(told, known.said(self)) do
		table.insert(all, { written = day, value = tonumber(day) :: number })
	end
	return all
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

--- Returns what was assumed or left open in place of an answer, each with the part of the answer where it belongs.
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

--- Returns clauses by the sentence that they stand in, in order.
local function by_sentence(clauses: { known.Clause }): { { known.Clause } }
	local found: { { known.Clause } } = {}
	for _, clause in clauses do
		local last = found[#found]
		if last ~= nil and last[1].within == clause.within then
			table.insert(last, clause)
		else
			table.insert(found, { clause })
		end
	end
	return found
end

--- Returns what is wrong with an answer as it stands.
function draft.faults(self: app.App, made: session.Decision): { Fault }
	local found: { Fault } = {}
	local function add(text: string, clauses: { known.Clause }?)
		table.insert(found, { id = `F{#found + 1}`, text = text, clauses = clauses or {} })
	end
	local lines = draft.lines(self, made)
	for _, clauses in by_sentence(known.missing(self, lines)) do
		local whole = clauses[1].within
		local parts = table.concat(
			list.map(clauses, function(clause): string
				return `"{clause.text}"`
			end),
			", "
		)
		local of = if parts == `"{whole}"` then "" else ` (of: "{whole}")`
		add(`No line seems to tell {parts}{of}`, clauses)
	end
	local record = known.record(lines)
	for _, left in draft.left_questions(self) do
		if not known.is_told(self, left.clause, record) then
			local clause = { text = left.clause, within = left.clause }
			add(`It was left out when it was asked, and {left.part} seems to say nothing of it: {left.text}`, { clause })
		end
	end
	local allowed, said = allowed_figures(self, made), all_said(self)
	local asks = ledger.plain(self.doc.requestText)
	local third = self.t("answer.third_person")
	-- A figure that stands in several lines is one fault.
	local places: { [string]: { string } } = {}
	local unsaid: { string } = {}
	for _, line in placed_lines(self, made) do
		for _, figure in figures.unsaid(line.text, allowed) do
			if places[figure] == nil then
				places[figure] = {}
				table.insert(unsaid, figure)
			end
			table.insert(places[figure], line.place)
		end
		for _, quote in quotes_of(line.text) do
			if not ledger.is_said(quote, said) then
				add(`Nobody said these words ({line.place}): "{quote}"`)
			end
		end
		if ledger.stands_in(third, ledger.plain(line.text)) and not ledger.stands_in(third, asks) then
			add(`It speaks of them and not to them: {line.place}`)
		end
	end
	for _, figure in unsaid do
		local where = table.concat(places[figure], ", ")
		add(`{figure} is neither theirs, as far as it holds, nor has it a sum that gives it, beside it or in figures: {where}`)
	end
	return found
end

--- Returns a text without the sentences that have a figure which nobody said.
local function without_invented(line: string, allowed: { figures.Figure }): string
	local kept = list.filter(ledger.sentences(line), function(sentence): boolean
		return #figures.unsaid(sentence, allowed) == 0
	end)
	return table.concat(kept, " ")
end

--- How words say of themselves that they suggest something, in the languages of the flow.
local SUGGESTING = { "propos", "suggest", "suggér" }

--- Returns a function that puts a mark behind a line for each figure that is only suggested, where its own words do not say so: once,
--- where it is read first.
local function marker(self: app.App, made: session.Decision): (line: string) -> string
	local marked: { [string]: boolean } = {}
	return function(line: string): string
		local folded = string.lower(line)
		local says_so = list.some(SUGGESTING, function(word): boolean
			return string.find(folded, word, 1, true) ~= nil
		end)
		local out = line
		for _, one in made.figures or {} :: { session.OwnFigure } do
			local has_it = list.some(figures.of(line), function(figure): boolean
				return figure.written == one.figure
			end)
			if one.how == "proposed" and has_it and not marked[one.figure] then
				marked[one.figure] = true
				out ..= if says_so then "" else ` {self.t("answer.proposal", { figure = one.figure })}`
			end
		end
		return out
	end
end

--- Makes an answer whole by the host's own means, where nobody mended it: sentences with figures that nobody said are taken out, what a
--- line repeats is told once, and what of the user's is told nowhere is placed in their words.
function draft.close(self: app.App, made: session.Decision, left_out: { string })
	local values: app.Values = made :: any
	local allowed = allowed_figures(self, made)
	local with_marks = marker(self, made)
	local decision = without_invented(made.decision.text, allowed)
	made.decision.text = if decision ~= "" then decision else app.option_text(self, made.option)
	for _, part in draft.PARTS do
		local kept: { session.Point } = json.array({} :: { session.Point })
		for _, point in draft.part(made, part.field) do
			point.text = with_marks(without_invented(point.text, allowed))
			if point.text ~= "" then
				table.insert(kept, point)
			end
		end
		if values[part.field] ~= nil then
			values[part.field] = kept
		end
	end
	local facts: { session.Fact } = json.array({} :: { session.Fact })
	local rest = table.clone(made)
	rest.known = json.array({})
	local told = draft.lines(self, rest)
	for _, fact in made.known or {} :: { session.Fact } do
		if not similarity.repeats(fact.text, told, TOLD_TWICE) or #figures.of(fact.text) > 0 then
			table.insert(facts, fact)
			table.insert(told, fact.text)
		end
	end
	made.known = facts
	-- What no line below it marks is marked in the sentence itself.
	made.decision.text = with_marks(made.decision.text)
	local missing = list.filter(known.missing(self, told), function(clause): boolean
		return table.find(left_out, clause.text) == nil
	end)
	for _, fact in known.in_their_words(self, missing) do
		table.insert(facts, fact)
	end
	local record = known.record(told)
	for _, left in draft.left_questions(self) do
		if not known.is_told(self, left.clause, record) and table.find(left_out, left.clause) == nil then
			local points: { session.Point } = values[left.part] or json.array({})
			table.insert(points, { text = left.text, from = made.decision.from })
			values[left.part] = points
		end
	end
end

return draft
