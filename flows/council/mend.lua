--!strict
--- Mends a memo, once: the moderator gets what the host found wrong with it, the holes that reviewers found, what its reader missed and
--- where they stumbled, and who would still decide otherwise, and writes it anew as a whole. It may also say why a hole is none.

local app = require("./app")
local document = require("../common/document")
local draft = require("./draft")
local json = require("@nietz/json")
local lang = require("./lang")
local list = require("../common/list")
local marked = require("../common/marked")
local session = require("./session")
local shape = require("../common/shape")
local translations = require("../common/translations")
local ui = require("@nietz/ui")

local mend = {}

--- A hole that a reviewer found, before it is answered.
export type Found = { name: string, turnId: string, text: string }
--- Where a reader stumbled: in which words, and why.
export type Stumble = { words: string, why: string }

--- A reply with fewer words than this part of the memo's is a patch, and no memo.
mend.WHOLE = 0.5

--- What a memo is written or mended by. `reports` is what who would still decide otherwise says, in one text each.
export type Findings = {
	holes: { Found },
	stumbles: { Stumble },
	missed: { document.Source },
	reports: { { name: string, text: string } },
}

--- Returns the ids by which holes are answered.
function mend.ids(holes: { Found }): { string }
	local ids: { string } = {}
	for index in holes do
		table.insert(ids, `H{index}`)
	end
	return ids
end

--- Returns the shape of what is said to holes.
function mend.answers(ids: { string }): shape.Shape
	local hole = shape.object({ "id", "how", "why" }, {
		id = { enum = ids },
		how = { enum = { "mended", "open", "refused" } },
		why = shape.text(0),
	})
	return shape.list(hole, 0, #ids)
end

local function schema(ids: { string }): shape.Shape
	local names: { string } = {}
	local members: { [string]: shape.Shape } = { memo = shape.text(0), decision = shape.text(0), title = shape.text(0, draft.TITLE) }
	if #ids > 0 then
		table.insert(names, "holes")
		members.holes = mend.answers(ids)
	end
	for _, name in { "memo", "decision", "title" } do
		table.insert(names, name)
	end
	return shape.object(names, members)
end

--- Puts a hole that stays among what is open, in its author's words.
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

--- Tells what is to be mended, in words.
local function tell_what(self: app.App, missed: number, faults: number, holes: { Found })
	local parts: { string } = {}
	if missed > 0 then
		table.insert(parts, translations.counted(self.t, "mend.untold", missed))
	end
	if faults > 0 then
		table.insert(parts, translations.counted(self.t, "mend.wrong", faults))
	end
	for _, hole in holes do
		table.insert(parts, self.t("mend.holes", { who = lang.called(self.t, hole.name) }))
	end
	if #parts > 0 then
		ui.say(self.t("mend.what", { what = table.concat(parts, ", ") }))
	end
end

--- Tells what was found in a draft before the memo is written.
function mend.tell(self: app.App, found: Findings, faults: number)
	tell_what(self, #found.missed, faults + #found.stumbles, found.holes)
end

--- Keeps what came of holes. What nobody answered is open, and says so.
function mend.settle(self: app.App, made: session.Decision, holes: { Found }, replies: { app.Values })
	local answered: { session.Hole } = json.array({} :: { session.Hole })
	for index, hole in holes do
		local settled = list.find(replies, function(one): boolean
			return one.id == `H{index}`
		end)
		local how: string = if settled ~= nil then settled.how else "open"
		local why: string? = if settled == nil then self.t("mend.unanswered") else nil
		if settled ~= nil and how == "refused" and settled.why ~= "" then
			why = app.to_line(settled.why)
		end
		if how == "open" then
			put_among_open(made, hole)
		end
		table.insert(answered, { name = hole.name, text = hole.text, how = how, why = why })
	end
	made.holes = if #answered > 0 then answered else nil
end

--- Returns what is wrong with a memo that is only a patch of one, or nil.
function mend.patch_fault(memo: string, least: number): string?
	return if marked.length(memo) < least then "memo: the whole memo, from its first sentence to its last" else nil
end

--- Returns a memo that was written anew where there is anything to mend.
function mend.once(self: app.App, made: session.Decision, memo: draft.Memo, found: Findings): draft.Memo
	local faults = draft.faults(self, memo)
	local holes, stumbles, missed, reports = found.holes, found.stumbles, found.missed, found.reports
	if #missed == 0 and #faults == 0 and #holes == 0 and #stumbles == 0 and #reports == 0 then
		return memo
	end
	local ids = mend.ids(holes)
	tell_what(self, #missed, #faults + #stumbles, holes)
	local least = mend.WHOLE * marked.length(memo.text)
	local value = app.ask_model(self, {
		prompt = "mend",
		vars = {
			missed = missed,
			faults = faults,
			holes = holes,
			stumbles = stumbles,
			reports = reports,
			words = draft.WORDS,
		},
		schema = schema(ids),
		check = function(value: app.Values): string?
			return if value.memo == "" then nil else mend.patch_fault(value.memo, least)
		end,
		persona = self.moderator,
		label = self.t("label.mend"),
		purpose = "council",
		temperature = 0.2,
		small = false,
	})
	if #holes > 0 then
		mend.settle(self, made, holes, if value ~= nil then value.holes or {} else {})
	end
	if value == nil then
		return memo
	end
	local anew = draft.memo(value)
	return {
		title = if anew.title ~= "" then anew.title else memo.title,
		decision = if anew.decision ~= "" then anew.decision else memo.decision,
		text = if anew.text ~= "" then anew.text else memo.text,
	}
end

return mend
