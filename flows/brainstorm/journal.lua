--!strict
--- The journal of a session: what was asked and answered, what was noted of it with the words that it rests on, what holds no more,
--- and what was set aside by going back.

local app = require("./app")
local confidences = require("./confidences")
local ems = require("./ems")
local lang = require("./lang")
local ledger = require("../common/ledger")
local list = require("../common/list")
local notebook = require("./notebook")
local session = require("./session")
local template = require("@nietz/template")
local text = require("@nietz/text")

local journal = {}

--- The EMS with which each iteration ended: that with which the next one on its way began, or the session's.
local function ems_after(doc: session.Doc, iteration: number): number?
	for _, entry in doc.session.history do
		if session.after(doc, entry.iteration) == iteration then
			return entry.ems
		end
	end
	return if session.turn(doc) == iteration then doc.session.ems else nil
end

local function note_line(doc: session.Doc, note: session.Note): { kind: string, text: string }
	local shown = session.without_private(doc, note.text)
	return { kind = note.by or note.kind or "", text = if note.about then `{note.about} → {shown}` else shown }
end

--- Returns what was noted in an iteration, one line each, with the words that it rests on; what holds no more is struck out.
local function noted(self: app.App, turn: number, gone: { ledger.Entry }): { string }
	local told = list.filter(ledger.of_turn(self.doc.nietz.ledger, turn), function(entry): boolean
		return not confidences.stands_behind(self.doc, entry)
	end)
	return list.map(told, function(entry): string
		local line = if entry.kind == "revocation"
			then `**{entry.id}** {self.t("kinds.revocation")}: {entry.of} ({entry.text})`
			else notebook.line(self, entry)
		local shown = if table.find(gone, entry) ~= nil then `~~{line}~~` else line
		local by = if entry.by == "user" then "" else ` ({entry.by})`
		local quote = if entry.quote then ` “{entry.quote}”` else ""
		return shown .. by .. quote
	end)
end

--- Returns what the brief's items rest on, those that rest on something.
local function rests_of(own: session.Own): { session.Rest }
	local kept: { session.Rest } = if own.brief then own.brief.rests or {} else {}
	local found: { session.Rest } = {}
	for _, rest in kept do
		if #rest.from > 0 then
			table.insert(found, { section = rest.section, text = text.truncate(rest.text, 90), from = rest.from })
		end
	end
	return found
end

--- Returns the techniques that were used, each with its reason in the user's language: files name the axes as the specification does.
local function techniques_of(self: app.App): { session.UsedTechnique }
	local used = list.filter(self.doc.session.techniques_history, function(one): boolean
		return one.applied ~= false
	end)
	return list.map(used, function(one): session.UsedTechnique
		local shown = table.clone(one)
		local reason = one.suggested_reason or ""
		for _, axis in ems.AXES do
			if string.sub(reason, 1, #axis.file + 1) == `{axis.file} ` then
				shown.suggested_reason = self.t(`axes.{axis.key}`) .. string.sub(reason, #axis.file + 1)
			end
		end
		return shown
	end)
end

--- Returns the session's journal as Markdown.
function journal.render(self: app.App): string
	local s = self.doc.session
	local own = self.doc.nietz
	local counts = session.counts(self.doc)
	local gone = ledger.revoked(own.ledger, counts)
	local entries: { any } = {}
	local values: { number } = {}
	for _, entry in s.history do
		local exchange: { { question: string, answer: string } } = {}
		for index, question in entry.questions do
			table.insert(exchange, { question = question, answer = session.without_private(self.doc, entry.responses[index] or "") })
		end
		local notes: { { kind: string, text: string } } = {}
		for _, note in own.notes do
			if note.iteration == entry.iteration then
				table.insert(notes, note_line(self.doc, note))
			end
		end
		local after = ems_after(self.doc, entry.iteration) or entry.ems
		table.insert(values, after)
		table.insert(entries, {
			iteration = entry.iteration,
			phase = self.t(`phases.{entry.phase}`),
			before = entry.ems,
			after = after,
			delta = ems.with_sign(after - entry.ems),
			timestamp = entry.timestamp or "",
			minutes = entry.duration or 0,
			exchange = exchange,
			notes = notes,
			noted = noted(self, entry.iteration, gone),
			aside = not counts(entry.iteration),
		})
	end
	return template.render("./screens/journal.md", {
		l = lang.data(self.lang, "brief"),
		s = { slug = s.slug, id = s.id, ems = s.ems, minutes = s.duration_minutes, started_at = s.started_at, updated = s.updated },
		topic = own.topic,
		course = ems.sparkline(values),
		first = noted(self, 0, gone),
		entries = entries,
		techniques = techniques_of(self),
		party = s.party_history,
		panel = s.panel_history,
		rests = rests_of(own),
		sources = if own.about then own.about.files else {},
	})
end

return journal
