--!strict
--- A turn of a persona: how the persona is asked, which replies are valid, and how a reply becomes a turn that others can take
--- up. Apart from the debate, because answers to the user are made the same way.

local agreement = require("./agreement")
local app = require("./app")
local clock = require("@nietz/clock")
local json = require("@nietz/json")
local list = require("../common/list")
local round = require("../common/round")
local session = require("./session")
local shape = require("../common/shape")
local similarity = require("../common/similarity")
local text = require("@nietz/text")
local ui = require("@nietz/ui")

local persona_turns = {}

--- The reply of one persona in a cycle, before it is a turn.
export type Reply = { value: any, model: string, at: string, latency: number }

local WAYS_TO_RESPOND = { "builds_on", "challenges" }
--- How many earlier points a persona is reminded of.
local MAX_EARLIER = 24

--- Returns the ids of the options, and `undecided`.
function persona_turns.stances(self: app.App): { string }
	local ids: { string } = {}
	for _, option in self.doc.metadata.options do
		table.insert(ids, option.id)
	end
	table.insert(ids, agreement.UNDECIDED)
	return ids
end

local function reply_schema(self: app.App, ids: { string }): { [string]: any }
	local first = #ids == 0
	local properties: { [string]: any } = {
		points = shape.list(shape.text(3, 220), if first then 1 else 0, if first then 3 else 2),
		recommends = shape.text(3, 200),
		stance = { enum = persona_turns.stances(self) },
		sure = { type = "integer", minimum = 0, maximum = 100 },
	}
	if not first then
		-- An enumeration, so that the model cannot respond to a point that nobody made.
		properties.responds = shape.list(
			shape.object({ "to", "how", "why" }, { how = { enum = WAYS_TO_RESPOND }, to = { enum = ids }, why = shape.text(3, 220) }),
			1,
			2
		)
	end
	local order = { "points", "recommends", "stance", "sure" }
	if not first then
		table.insert(order, 1, "responds")
	end
	return shape.object(order, properties)
end

--- Returns the position of a persona after the last cycle, or nil.
function persona_turns.last_position(self: app.App, name: string): any
	local history = self.doc.metadata.measures or {}
	local last = history[#history]
	return list.find(if last then last.positions else {}, function(position): boolean
		return position.name == name
	end)
end

--- Removes from a reply what is no point: single words, and options handed back.
local function keep_real_points(self: app.App, value: any)
	local options: { string } = {}
	for _, option in self.doc.metadata.options do
		table.insert(options, option.text)
	end
	local kept: { string } = {}
	for _, point in value.points do
		local line = app.to_line(point)
		local is_slip = #similarity.words(line) == 0 or string.find(line, "%w%s+%w") == nil
		if not is_slip and not similarity.echoes(line, options) then
			table.insert(kept, line)
		end
	end
	value.points = kept
end

--- Returns what is wrong with a reply, or nil: it must have at least one point. Points that are none are removed.
function persona_turns.check_reply(self: app.App, value: any): string?
	keep_real_points(self, value)
	if #value.points == 0 and #(value.responds or {}) == 0 then
		return "points: say at least one thing in a whole sentence of your own, and do not hand back an option"
	end
	return nil
end

--- Returns all points of a reply, responses included, each once.
function persona_turns.texts(value: any): { string }
	local said: { string } = {}
	local function add(line: string)
		if not similarity.repeats(line, said, agreement.SAME) then
			table.insert(said, line)
		end
	end
	for _, point in value.points do
		add(point)
	end
	for _, answer in value.responds or {} do
		add(app.to_line(answer.why))
	end
	return said
end

--- Returns the latest points from before the last cycle, so that nobody repeats them.
local function earlier_points(self: app.App): { string }
	local last = self.doc.debateCycles
	local found: { string } = {}
	for index = #self.points, 1, -1 do
		local point = self.points[index]
		if point.cycle < last and #found < MAX_EARLIER then
			table.insert(found, 1, `{point.by}: {point.text}`)
		end
	end
	return found
end

--- Returns the function that asks a persona in a cycle; its whole reply is also put into `heard`.
function persona_turns.speaker(self: app.App, heard: { [string]: Reply }): round.Speak
	return function(voice: any, seen: { round.Point }, ids: { string }, _must: boolean): ({ string }?, { string }?)
		local vars = app.prompt_vars(self)
		vars.seen = {}
		for _, point in seen do
			table.insert(vars.seen, { id = point.id, by = point.by, text = point.text, own = point.by == voice.name })
		end
		vars.older = earlier_points(self)
		vars.before = persona_turns.last_position(self, voice.name) or false
		vars.remarks = self.remarks
		vars.contrarian = table.find(voice.tags, "contrarian") ~= nil
		local began = clock.unix()
		local value, reply = app.ask_model(self, {
			prompt = "position",
			vars = vars,
			schema = reply_schema(self, ids),
			check = function(value: any): string?
				return persona_turns.check_reply(self, value)
			end,
			persona = voice,
			label = voice.name,
			purpose = "council",
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
		return persona_turns.texts(value), refers
	end
end

--- Returns the text of a turn.
local function render_turn(self: app.App, value: any, before: any, by: { [string]: app.Point }): string
	local head = if value.stance == agreement.UNDECIDED then "Undecided" else `{value.stance}: {app.option_text(self, value.stance)}`
	local was = if before and before.option ~= value.stance then `, before: {before.option}` else ""
	local lines: { string } = { `**{head}** (confidence {value.sure}{was})`, "" }
	for _, point in value.points do
		table.insert(lines, `- {point}`)
	end
	for _, answer in value.responds or {} do
		local point = by[answer.to]
		local how = if answer.how == "challenges" then "Against" else "With"
		table.insert(lines, `- {how} {point.by} ("{text.truncate(point.text, 60)}"): {app.to_line(answer.why)}`)
	end
	table.insert(lines, "")
	table.insert(lines, `*Recommends:* {app.to_line(value.recommends)}`)
	return table.concat(lines, "\n")
end

local function points_by_id(self: app.App): { [string]: app.Point }
	local found: { [string]: app.Point } = {}
	for _, point in self.points do
		found[point.id] = point
	end
	return found
end

--- Records and shows what one persona said, and adds its points to those that others can take up.
function persona_turns.record(self: app.App, name: string, heard: Reply, texts: { string }, number: number, asked: string?)
	local value = heard.value
	local by = points_by_id(self)
	local responds: { any } = json.array({})
	for _, answer in value.responds or {} do
		local point = by[answer.to]
		table.insert(responds, { how = answer.how, name = point.by, turnId = point.turnId, point = point.text })
	end
	local turn = app.record_turn(self, {
		sender = app.participant_of(self, name),
		recipient = if asked then session.user(self.doc) else nil,
		messageType = "discussion",
		content = render_turn(self, value, persona_turns.last_position(self, name), by),
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

return persona_turns
