--!strict
--- The ledger of a session (`../common/ledger.lua`): which kinds of entries there are, what of it holds where the session stands,
--- and what the user does with it. `session.ideas` follows it.

local app = require("./app")
local json = require("@nietz/json")
local ledger = require("../common/ledger")
local list = require("../common/list")
local session = require("./session")
local ui = require("@nietz/ui")

local notebook = {}

--- What is said without more, what is settled, and what somebody is to do or to fear. `finding` and `contested` are what a round of
--- voices came to.
notebook.SAID = { "fact", "constraint", "goal", "user", "scope", "out", "idea", "open" }
notebook.PLANNED = { "step", "risk" }

--- Returns what holds, of these kinds or of all.
function notebook.holding(doc: session.Doc, kinds: { string }?): { ledger.Entry }
	return ledger.holding(doc.nietz.ledger, session.counts(doc), kinds)
end

--- Makes `session.ideas` what holds of the ideas. Each keeps its id; those that hold no more leave a gap.
function notebook.sync_ideas(doc: session.Doc)
	local s = doc.session
	local kept: { [number]: session.Idea } = {}
	for _, idea in s.ideas do
		kept[idea.id] = idea
	end
	local found = json.array({} :: { session.Idea })
	for _, entry in notebook.holding(doc, { "idea" }) do
		if entry.idea == nil then
			doc.nietz.last_idea += 1
			entry.idea = doc.nietz.last_idea
		end
		local id, score = entry.idea :: number, entry.score or session.UNRATED
		local idea: session.Idea = kept[id] or { id = id, content = "", score = score }
		idea.content, idea.score = entry.text, score
		table.insert(found, idea)
	end
	table.sort(found, function(one: session.Idea, other: session.Idea): boolean
		return one.id < other.id
	end)
	s.ideas = found
end

--- Adds an entry and returns it, or nil where what holds says the same words. It belongs to where the session stands.
function notebook.add(
	doc: session.Doc,
	kind: string,
	value: string,
	more: { by: string?, quote: string?, score: number?, why: string? }?
): ledger.Entry?
	session.reopen(doc)
	local extra: { by: string?, quote: string?, score: number?, why: string? } = more or {}
	local made = ledger.add(doc.nietz.ledger, {
		kind = kind,
		text = value,
		by = extra.by or "user",
		turn = session.turn(doc),
		quote = extra.quote,
		score = extra.score,
		why = extra.why,
	}, session.counts(doc))
	if made ~= nil and kind == "idea" then
		notebook.sync_ideas(doc)
	end
	return made
end

--- Entries that ask: they may reckon with what was said.
local RECKONS = { "open", "contested" }

--- Takes what a model proposes of what the user said: now (`said`), or at any time (`heard`).
function notebook.apply(doc: session.Doc, proposal: ledger.Proposal, said: string, heard: string, known: string): ledger.Change
	local turn = { number = session.turn(doc), by = "user", said = said, heard = heard, known = known, reckons = RECKONS }
	local change = ledger.apply(doc.nietz.ledger, proposal, turn, session.counts(doc))
	notebook.sync_ideas(doc)
	return change
end

--- Returns an entry as one line: its id, its kind, what it says, why, over what, and whose and until when it is.
function notebook.line(self: app.App, entry: ledger.Entry): string
	local shown = `**{entry.id}** {self.t(`kinds.{entry.kind}`)}: {entry.text}`
	local more: { string } = {}
	local why, rejected = entry.why or "", entry.rejected or ""
	local reason = if why ~= "" then self.t("ledger.why", { why = why }) else ""
	local over = if rejected ~= "" then self.t("ledger.rejected", { rejected = rejected }) else ""
	for _, part in { reason, over, entry.owner or "", entry.date or "" } do
		if part ~= "" then
			table.insert(more, part)
		end
	end
	return if #more > 0 then `{shown} ({table.concat(more, "; ")})` else shown
end

--- Shows what changed in the ledger, each change in one line.
function notebook.show(self: app.App, change: ledger.Change)
	local lines: { string } = {}
	for _, entry in change.revoked do
		local key = if entry.kind == "open" then "ledger.answered" else "ledger.revoked"
		table.insert(lines, `- {self.t(key, { line = notebook.line(self, entry) })}`)
	end
	for _, entry in change.added do
		table.insert(lines, `- {self.t("ledger.added", { line = notebook.line(self, entry) })}`)
	end
	if #lines > 0 then
		ui.say(table.concat(lines, "\n"))
	end
end

--- The commands that add an entry in the user's own words: `/fact`, `/decide`, `/idea`, `/open`.
function notebook.command(kind: string): (self: app.App, argument: string) -> app.Signal?
	return function(self: app.App, argument: string): app.Signal?
		if argument == "" then
			ui.say(self.t("ledger.empty"))
			return nil
		end
		local made = notebook.add(self.doc, kind, argument)
		if made == nil then
			ui.say(self.t("ledger.known"))
		else
			ui.say(self.t("ledger.added", { line = notebook.line(self, made) }))
			app.save(self)
		end
		return nil
	end
end

--- Returns the entry with this id if it holds; says so if it does not.
local function find_holding(self: app.App, id: number?): ledger.Entry?
	local found = list.find(notebook.holding(self.doc), function(entry): boolean
		return entry.id == id
	end)
	if found == nil then
		ui.say(self.t("ledger.unknown", { id = id or "?" }))
	end
	return found
end

--- The command `/strike N…`.
function notebook.strike(self: app.App, argument: string): app.Signal?
	local struck = 0
	for number in string.gmatch(argument, "%d+") do
		local entry = find_holding(self, tonumber(number))
		if entry ~= nil then
			ledger.revoke(self.doc.nietz.ledger, entry.id, { by = "user", turn = session.turn(self.doc) }, session.counts(self.doc))
			ui.say(self.t("ledger.revoked", { line = notebook.line(self, entry) }))
			struck += 1
		end
	end
	if struck > 0 then
		session.reopen(self.doc)
		notebook.sync_ideas(self.doc)
		app.save(self)
	end
	return nil
end

--- The command `/rate ID SCORE`.
function notebook.rate(self: app.App, argument: string): app.Signal?
	local id, score = string.match(argument, "^(%d+)%s+(%d+)$")
	local points = tonumber(score)
	if points == nil or points > 10 then
		ui.say(self.t("ledger.rating"))
		return nil
	end
	local entry = find_holding(self, tonumber(id))
	if entry == nil then
		return nil
	elseif entry.kind ~= "idea" then
		ui.say(self.t("ledger.no_idea", { line = notebook.line(self, entry) }))
		return nil
	end
	session.reopen(self.doc)
	entry.score = points
	notebook.sync_ideas(self.doc)
	ui.say(self.t("ledger.rated", { line = notebook.line(self, entry), score = points }))
	app.save(self)
	return nil
end

--- The command `ledger`: all that holds.
function notebook.show_all(self: app.App): app.Signal?
	local lines: { string } = {}
	for _, entry in notebook.holding(self.doc) do
		table.insert(lines, `- {notebook.line(self, entry)}`)
	end
	ui.say(if #lines > 0 then table.concat(lines, "\n") else self.t("status.nothing"))
	return nil
end

return notebook
