--!strict
--- Mends an answer, once: the moderator gets what the host found wrong with it and the holes that reviewers found, and changes lines.
--- It may also say that a thing is told already, by the words that tell it, that it bears on nothing here, or why a hole is none.

local app = require("./app")
local draft = require("./draft")
local figures = require("../common/figures")
local json = require("@nietz/json")
local known = require("./known")
local ledger = require("../common/ledger")
local list = require("../common/list")
local session = require("./session")
local shape = require("../common/shape")
local translations = require("../common/translations")
local ui = require("@nietz/ui")

local mend = {}

--- A hole that a reviewer found, before it is answered.
export type Found = { name: string, turnId: string, text: string }

local function schema(ids: { string }, parts: { string }): shape.Shape
	local change = shape.object({ "part", "line", "text" }, {
		part = { enum = parts },
		line = shape.integer(0, 60),
		text = shape.text(0),
	})
	local settled = shape.object({ "id", "how", "words" }, {
		id = { enum = ids },
		how = { enum = { "mended", "told", "needless", "open", "refused" } },
		words = shape.text(0),
	})
	return shape.object({ "changes", "figures", "settled" }, {
		changes = shape.list(change, 0, 60),
		figures = mend.FIGURES,
		settled = shape.list(settled, 0, #ids),
	})
end

--- Figures of the answer that nobody said, each with the sum that gives it.
mend.FIGURES = shape.list(shape.object({ "figure", "how" }, { figure = shape.text(1), how = shape.text(1) }), 0, 40) :: shape.Shape

--- Returns figures as a decision keeps them.
function mend.own_figures(raw: { app.Values }): { session.OwnFigure }
	local found: { session.OwnFigure } = json.array({} :: { session.OwnFigure })
	for _, one in raw do
		table.insert(found, { figure = app.to_line(one.figure), how = app.to_line(one.how) })
	end
	return found
end

--- A new line of a part whose lines have labels: `Who: Ann`.
local LABELLED = '^"?([^:"]+)"?:%s+(.+)$'

--- Changes the lines of an answer: one that is there (an empty text takes it out), or a new one behind them (0).
local function change(made: session.Decision, changes: { app.Values }, from: { session.From })
	local values: app.Values = made :: any
	for _, part in draft.PARTS do
		local points: { session.Point } = table.clone(draft.part(made, part.field))
		local gone: { [number]: boolean } = {}
		local new: { session.Point } = {}
		for _, one in changes do
			local text = app.to_line(one.text)
			local old = points[one.line]
			if one.part ~= part.name then
				continue
			elseif old ~= nil and text == "" then
				-- What was rejected is told in any case.
				gone[one.line] = old.option == nil
			elseif old ~= nil then
				local changed = table.clone(old)
				local label, rest = string.match(text, LABELLED)
				-- It may be told again with its label.
				changed.text = if old.label ~= nil and label == old.label then rest :: string else text
				points[one.line] = changed
			elseif text ~= "" and part.name ~= "rejected" then
				local label, rest = string.match(text, LABELLED)
				local has_label = part.labels and label ~= nil
				table.insert(new, { text = if has_label then rest else text, label = if has_label then label else nil, from = from })
			end
		end
		local kept: { session.Point } = json.array({} :: { session.Point })
		for place, point in points do
			if not gone[place] then
				table.insert(kept, point)
			end
		end
		table.move(new, 1, #new, #kept + 1, kept)
		if values[part.field] ~= nil or #new > 0 then
			values[part.field] = kept
		end
	end
	for _, one in changes do
		if one.part == "decision" and app.to_line(one.text) ~= "" then
			made.decision.text = app.to_line(one.text)
		end
	end
end

--- Whether the host believes that something of the user's need not be placed: words of the answer tell it, or it bears on nothing, has
--- no figure, and its names stand in the answer.
local function is_settled(self: app.App, clause: known.Clause, how: string, words: string, lines: { string }): boolean
	local wanted = known.wanted_figures(self, clause.text)
	if how == "needless" then
		return #wanted == 0 and known.names_are_told(clause.text, lines)
	elseif how ~= "told" and how ~= "mended" then
		return false
	end
	local line = list.find(lines, function(one): boolean
		return ledger.is_said(words, one)
	end)
	local told = if line ~= nil then figures.of(line) else {}
	return line ~= nil
		and not list.some(wanted, function(figure): boolean
			return not list.some(told, function(other): boolean
				return other.value == figure.value
			end)
		end)
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

--- What the moderator says of a hole, as it is kept.
local HOW_OF_HOLES: { [string]: string } = { refused = "refused", needless = "refused", open = "open" }

--- Returns what is to be mended, in words.
local function what_of(self: app.App, faults: { draft.Fault }, holes: { Found }): string
	local parts: { string } = {}
	local untold, wrong = 0, 0
	for _, fault in faults do
		untold += if #fault.clauses > 0 then 1 else 0
		wrong += if #fault.clauses > 0 then 0 else 1
	end
	if untold > 0 then
		table.insert(parts, translations.counted(self.t, "mend.untold", untold))
	end
	if wrong > 0 then
		table.insert(parts, translations.counted(self.t, "mend.wrong", wrong))
	end
	for _, hole in holes do
		table.insert(parts, self.t("mend.holes", { who = hole.name }))
	end
	return table.concat(parts, ", ")
end

--- Mends an answer where there is something to mend. Returns what of the user's need not be placed. Where the reply cannot be used the
--- answer stands as it is, and holes stand among what is open.
function mend.once(self: app.App, made: session.Decision, holes: { Found }): { string }
	local faults = draft.faults(self, made)
	local left_out: { string } = {}
	if #faults == 0 and #holes == 0 then
		return left_out
	end
	local ids = list.map(faults, function(fault): string
		return fault.id
	end)
	for index in holes do
		table.insert(ids, `H{index}`)
	end
	ui.say(self.t("mend.what", { what = what_of(self, faults, holes) }))
	local parts = { "decision" }
	for _, part in draft.PARTS do
		table.insert(parts, part.name)
	end
	local value = app.ask_model(self, {
		prompt = "mend",
		vars = { faults = faults, holes = holes },
		schema = schema(ids, parts),
		persona = self.moderator,
		label = self.t("label.mend"),
		purpose = "council",
		temperature = 0.2,
		small = false,
	})
	local reply: app.Values = value or { changes = {}, figures = {}, settled = {} }
	change(made, reply.changes, made.decision.from)
	local own = made.figures or json.array({} :: { session.OwnFigure })
	for _, one in mend.own_figures(reply.figures) do
		table.insert(own, one)
	end
	made.figures = own
	local how_of: { [string]: app.Values } = {}
	for _, one in reply.settled do
		how_of[one.id] = one
	end
	local lines = draft.lines(self, made)
	local kept: { { text: string, why: string } } = json.array({})
	for _, fault in faults do
		local settled = how_of[fault.id]
		for _, clause in fault.clauses do
			if settled ~= nil and is_settled(self, clause, settled.how, settled.words, lines) then
				table.insert(left_out, clause.text)
				if settled.how == "needless" then
					table.insert(kept, { text = clause.text, why = app.to_line(settled.words) })
				end
			end
		end
	end
	made.leftOut = if #kept > 0 then kept else nil
	local answered: { session.Hole } = json.array({} :: { session.Hole })
	for index, hole in holes do
		local settled = how_of[`H{index}`]
		local how = if settled == nil then "open" else HOW_OF_HOLES[settled.how] or "mended"
		if settled == nil then
			put_among_open(made, hole)
		end
		local why = if settled ~= nil and settled.words ~= "" then app.to_line(settled.words) else nil
		table.insert(answered, { name = hole.name, text = hole.text, how = how, why = why })
	end
	made.holes = if #answered > 0 then answered else nil
	return left_out
end

return mend
