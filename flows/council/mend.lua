--!strict
--- Mends an answer, once: the moderator gets what the host found wrong with it, the holes that reviewers found, where a reader
--- stumbled, and who would still decide otherwise, and writes the sections anew that change. It may also say why a hole is none.

local app = require("./app")
local document = require("../common/document")
local draft = require("./draft")
local json = require("@nietz/json")
local list = require("../common/list")
local session = require("./session")
local shape = require("../common/shape")
local translations = require("../common/translations")
local ui = require("@nietz/ui")

local mend = {}

--- A hole that a reviewer found, before it is answered.
export type Found = { name: string, turnId: string, text: string }
--- Where a reader stumbled: in which words of a section, and why.
export type Stumble = { section: string, words: string, why: string }

local function schema(ids: { string }, sections: { string }, chatter: { string }): shape.Shape
	local change = shape.object({ "section", "text" }, { section = { enum = sections }, text = shape.text(0) })
	local names, members = { "changes" }, { changes = shape.list(change, 0, #sections) } :: { [string]: shape.Shape }
	if #ids > 0 then
		table.insert(names, "holes")
		local hole = shape.object({ "id", "how", "why" }, {
			id = { enum = ids },
			how = { enum = { "mended", "open", "refused" } },
			why = shape.text(0),
		})
		members.holes = shape.list(hole, 0, #ids)
	end
	if #chatter > 0 then
		table.insert(names, "chatter")
		members.chatter = shape.list({ enum = chatter }, 0, #chatter)
	end
	return shape.object(names, members)
end

--- Puts a hole that nobody answered among what is open, in its author's words.
local function put_among_open(made: session.Decision, hole: Found)
	local points: { session.Point } = table.clone(made.open or {} :: { session.Point })
	table.insert(points, { text = hole.text, from = json.array({ { name = hole.name, turnId = hole.turnId } }) })
	made.open = json.array(points)
end

--- Keeps the holes of an answer that nobody can mend.
function mend.leave_open(made: session.Decision, holes: { Found })
	local kept: { session.Hole } = json.array({} :: { session.Hole })
	for _, hole in holes do
		put_among_open(made, hole)
		table.insert(kept, { name = hole.name, text = hole.text, how = "open" })
	end
	made.holes = if #kept > 0 then kept else nil
end

--- Returns what is to be mended, in words.
local function what_of(self: app.App, missing: number, faults: number, holes: { Found }): string
	local parts: { string } = {}
	if missing > 0 then
		table.insert(parts, translations.counted(self.t, "mend.untold", missing))
	end
	if faults > 0 then
		table.insert(parts, translations.counted(self.t, "mend.wrong", faults))
	end
	for _, hole in holes do
		table.insert(parts, self.t("mend.holes", { who = hole.name }))
	end
	return table.concat(parts, ", ")
end

--- Tells what came of holes: what nobody answered is open, what was refused stands among the dissent with why.
local function settle(self: app.App, made: session.Decision, answer: document.Document, holes: { Found }, replies: { app.Values })
	local answered: { session.Hole } = json.array({} :: { session.Hole })
	for index, hole in holes do
		local settled = list.find(replies, function(one): boolean
			return one.id == `H{index}`
		end)
		local how: string = if settled ~= nil then settled.how else "open"
		local why = if settled ~= nil and settled.why ~= "" then app.to_line(settled.why) else nil
		if settled == nil then
			draft.add(answer, "open", hole.text, true)
		elseif how == "refused" and why ~= nil and answer.dissent ~= nil then
			local line = self.t("answer.refused", { hole = hole.text, why = why })
			draft.add(answer, "dissent", `**{hole.name}**: {line}`, true)
		end
		table.insert(answered, { name = hole.name, text = hole.text, how = how, why = why })
	end
	made.holes = if #answered > 0 then answered else nil
end

--- Returns an answer that was mended where there is something to mend. `reports` is what who would still decide otherwise says, in one
--- text each: where the reply does not take it into the dissent, it stands there in their words. Returns with it what the user said
--- of which nothing need be told.
function mend.once(
	self: app.App,
	made: session.Decision,
	raw: document.Document,
	basis: document.Basis,
	found: { holes: { Found }, stumbles: { Stumble }, reports: { { name: string, text: string } } }
): (document.Document, { document.Source })
	local missing, faults = document.missing(raw, basis), draft.faults(self, made, raw, basis)
	local holes, stumbles, reports = found.holes, found.stumbles, found.reports
	if #missing == 0 and #faults == 0 and #holes == 0 and #stumbles == 0 and #reports == 0 then
		return raw, {}
	end
	local ids: { string } = {}
	for index in holes do
		table.insert(ids, `H{index}`)
	end
	local leavable = document.leavable(missing)
	local chatter = list.keys(leavable)
	local what = what_of(self, #missing, #faults + #stumbles, holes)
	if what ~= "" then
		ui.say(self.t("mend.what", { what = what }))
	end
	local value = app.ask_model(self, {
		prompt = "mend",
		vars = {
			missing = list.map(missing, function(one): { id: string, text: string, lacks: string, chatter: string }
				local name = document.name_of(leavable, one.source)
				return { id = one.source.id, text = one.source.words, lacks = table.concat(one.lacks, ", "), chatter = name }
			end),
			faults = faults,
			holes = holes,
			stumbles = stumbles,
			reports = reports,
		},
		schema = schema(ids, basis.sections, chatter),
		persona = self.moderator,
		label = self.t("label.mend"),
		purpose = "council",
		temperature = 0.2,
		small = false,
	})
	local changes: { { section: string, text: string } } = if value ~= nil then value.changes else {}
	local answer = document.change(raw, changes)
	settle(self, made, answer, holes, if value ~= nil then value.holes or {} else {})
	local is_told = list.some(changes, function(one): boolean
		return one.section == "dissent"
	end)
	for _, report in reports do
		if is_told then
			break
		end
		draft.add(answer, "dissent", `**{self.t("answer.against", { who = report.name })}**: {report.text}`, true)
	end
	local left = list.map(if value ~= nil then value.chatter or {} else {}, function(name: string): document.Source
		return leavable[name]
	end)
	return answer, left
end

return mend
