--!strict
--- What a persona says: how it is asked, what may come back, and how that becomes a turn that others can take up.

local app = require("./app")
local clock = require("@nietz/clock")
local json = require("@nietz/json")
local list = require("../common/list")
local measure = require("./measure")
local round = require("../common/round")
local session = require("./session")
local shape = require("../common/shape")
local similarity = require("../common/similarity")
local text = require("@nietz/text")
local ui = require("@nietz/ui")

local speech = {}

--- What one persona said in a cycle, before it is a turn.
export type Heard = { value: any, model: string, at: string, latency: number }

local HOW = { "builds_on", "challenges" }
--- Older points that a persona is reminded of.
local MOST_OLDER = 24

function speech.stances(self: app.App): { string }
	local ids: { string } = {}
	for _, option in self.doc.metadata.options do
		table.insert(ids, option.id)
	end
	table.insert(ids, measure.UNDECIDED)
	return ids
end

local function schema(self: app.App, ids: { string }): { [string]: any }
	local first = #ids == 0
	local properties: { [string]: any } = {
		points = shape.list(shape.text(3, 220), if first then 1 else 0, if first then 3 else 2),
		recommends = shape.text(3, 200),
		stance = { enum = speech.stances(self) },
		sure = { type = "integer", minimum = 0, maximum = 100 },
	}
	if not first then
		-- The ids are an enumeration: a reply to something that nobody said cannot even be written.
		properties.responds =
			shape.list(shape.object({ "to", "how", "why" }, { how = { enum = HOW }, to = { enum = ids }, why = shape.text(3, 220) }), 1, 2)
	end
	local order = { "points", "recommends", "stance", "sure" }
	if not first then
		table.insert(order, 1, "responds")
	end
	return shape.object(order, properties)
end

--- Returns where somebody stood before, in words for the prompt.
function speech.stood(self: app.App, name: string): any
	local history = self.doc.metadata.measures or {}
	local last = history[#history]
	return list.find(if last then last.positions else {}, function(position): boolean
		return position.name == name
	end)
end

--- Leaves of the points of a reply those that are some: no slips of the model, and no option handed back.
local function sort_out(self: app.App, value: any)
	local options: { string } = {}
	for _, option in self.doc.metadata.options do
		table.insert(options, option.text)
	end
	local kept: { string } = {}
	for _, point in value.points do
		local line = app.line(point)
		local is_slip = #similarity.words(line) == 0 or string.find(line, "%w%s+%w") == nil
		if not is_slip and not similarity.echoes(line, options) then
			table.insert(kept, line)
		end
	end
	value.points = kept
end

--- Returns what is wrong with a reply, or nil: somebody who speaks says something.
function speech.fault(self: app.App, value: any): string?
	sort_out(self, value)
	if #value.points == 0 and #(value.responds or {}) == 0 then
		return "points: say at least one thing in a whole sentence of your own, and do not hand back an option"
	end
	return nil
end

function speech.texts_of(value: any): { string }
	local said: { string } = {}
	local function add(line: string)
		if not similarity.repeats(line, said, measure.SAME) then
			table.insert(said, line)
		end
	end
	for _, point in value.points do
		add(point)
	end
	for _, answer in value.responds or {} do
		add(app.line(answer.why))
	end
	return said
end

--- Returns what was said before the last cycle, the latest of it, so that nobody says it again.
local function older(self: app.App): { string }
	local last = self.doc.debateCycles
	local found: { string } = {}
	for index = #self.points, 1, -1 do
		local point = self.points[index]
		if point.cycle < last and #found < MOST_OLDER then
			table.insert(found, 1, `{point.by}: {point.text}`)
		end
	end
	return found
end

--- Returns how a persona is asked in this cycle; what it says is also kept whole in `heard`.
function speech.speaker(self: app.App, heard: { [string]: Heard }): round.Speak
	return function(voice: any, seen: { round.Point }, ids: { string }, _must: boolean): ({ string }?, { string }?)
		local vars = app.context(self)
		vars.seen = {}
		for _, point in seen do
			table.insert(vars.seen, { id = point.id, by = point.by, text = point.text, own = point.by == voice.name })
		end
		vars.older = older(self)
		vars.before = speech.stood(self, voice.name) or false
		vars.remarks = self.remarks
		vars.contrarian = table.find(voice.tags, "contrarian") ~= nil
		local began = clock.unix()
		local value, reply = app.think(self, {
			prompt = "position",
			vars = vars,
			schema = schema(self, ids),
			check = function(value: any): string?
				return speech.fault(self, value)
			end,
			persona = voice,
			label = voice.name,
			arm = "council",
			temperature = voice.temperature or 0.7,
		})
		if value == nil then
			return nil, nil
		end
		local refers: { string } = {}
		for index = #(value.responds or {}), 1, -1 do
			local to = value.responds[index].to
			if table.find(refers, to) ~= nil then
				table.remove(value.responds, index)
			else
				table.insert(refers, to)
			end
		end
		heard[voice.slug] = {
			value = value,
			model = (reply :: any).model,
			at = clock.now(),
			latency = math.round((clock.unix() - began) * 1000) / 1000,
		}
		return speech.texts_of(value), refers
	end
end

--- Returns the text of a turn.
local function content(self: app.App, value: any, before: any, by: { [string]: app.Point }): string
	local head = if value.stance == measure.UNDECIDED then "Undecided" else `{value.stance}: {app.option(self, value.stance)}`
	local was = if before and before.option ~= value.stance then `, before: {before.option}` else ""
	local lines: { string } = { `**{head}** (confidence {value.sure}{was})`, "" }
	for _, point in value.points do
		table.insert(lines, `- {point}`)
	end
	for _, answer in value.responds or {} do
		local point = by[answer.to]
		local how = if answer.how == "challenges" then "Against" else "With"
		table.insert(lines, `- {how} {point.by} ("{text.truncate(point.text, 60)}"): {app.line(answer.why)}`)
	end
	table.insert(lines, "")
	table.insert(lines, `*Recommends:* {app.line(value.recommends)}`)
	return table.concat(lines, "\n")
end

local function by_id(self: app.App): { [string]: app.Point }
	local found: { [string]: app.Point } = {}
	for _, point in self.points do
		found[point.id] = point
	end
	return found
end

--- Records and shows what one persona said, and adds its points to those that others can take up.
function speech.speak(self: app.App, name: string, heard: Heard, texts: { string }, number: number, asked: string?)
	local value = heard.value
	local by = by_id(self)
	local responds: { any } = json.array({})
	for _, answer in value.responds or {} do
		local point = by[answer.to]
		table.insert(responds, { how = answer.how, name = point.by, turnId = point.turnId, point = point.text })
	end
	local turn = app.record(self, {
		sender = app.seat(self, name),
		recipient = if asked then session.user(self.doc) else nil,
		messageType = "discussion",
		content = content(self, value, speech.stood(self, name), by),
		timestamp = heard.at,
		number = number,
		metadata = {
			stance = value.stance,
			confidence = value.sure,
			responds = responds,
			asked = asked,
			model = heard.model,
			latencySeconds = heard.latency,
		},
	})
	for _, line in texts do
		table.insert(self.points, { id = `P{#self.points + 1}`, by = name, text = line, turnId = turn.turnId, cycle = number })
	end
	ui.say(turn.content, { from = name })
end

return speech
