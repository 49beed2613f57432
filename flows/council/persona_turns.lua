--!strict
--- A turn of a persona: how the persona is asked, which replies are valid, and how a reply becomes a turn that others can take
--- up. Apart from the debate, because answers to the user are made the same way.

local agreement = require("./agreement")
local app = require("./app")
local clock = require("@nietz/clock")
local conversation = require("./conversation")
local json = require("@nietz/json")
local list = require("../common/list")
local look = require("../common/look")
local model_text = require("../common/model_text")
local personas = require("@nietz/personas")
local proposals = require("./proposals")
local round = require("../common/round")
local session = require("./session")
local shape = require("../common/shape")
local small = require("./small")
local ui = require("@nietz/ui")

local persona_turns = {}

--- The reply of one persona in a cycle, before it is a turn.
export type Reply = { value: app.Values, made: app.Made, at: string, small: boolean }

local WAYS_TO_RESPOND = { "builds_on", "challenges" }
--- Longest lines of a small mind, in letters.
local POINT, ANSWER, RECOMMENDATION = 220, 300, 200
--- How much is shown again of an option or a point that was shown whole, in letters, up to a whole word.
local OPTION = 60

--- Returns the ids of the options that can be stood for, and `undecided`.
function persona_turns.stances(self: app.App): { string }
	local ids: { string } = {}
	for _, option in app.open_options(self) do
		table.insert(ids, option.id)
	end
	table.insert(ids, agreement.UNDECIDED)
	return ids
end

--- Returns the schema of a position. A large mind's is the same for all who speak in a cycle.
local function reply_schema(self: app.App, ids: { string }, is_small: boolean): shape.Shape
	local first = #ids == 0
	local line = shape.text(3, small.most(is_small, POINT))
	local stances = persona_turns.stances(self)
	local properties: { [string]: shape.Shape } = {
		points = shape.list(line, if first then 1 else 0, if is_small then (if first then 3 else 2) else (if first then 4 else 3)),
		recommends = shape.text(3, small.most(is_small, RECOMMENDATION)),
		stance = { enum = stances },
		sure = { type = "integer", minimum = 0, maximum = 100 },
	}
	local order = { "points", "recommends", "stance", "sure" }
	if not first then
		-- An enumeration, so that the model cannot respond to a point that nobody made.
		properties.responds = shape.list(
			shape.object({ "to", "how", "why" }, { how = { enum = WAYS_TO_RESPOND }, to = { enum = ids }, why = line }),
			1,
			if is_small then 2 else 3
		)
		table.insert(order, 1, "responds")
	end
	if not is_small then
		properties.proposals = proposals.schema(self)
		table.insert(stances, proposals.STANCE)
		table.insert(order, #order - 2, "proposals")
	end
	return shape.object(order, properties)
end

--- Returns the position of a persona after the last cycle, or nil.
function persona_turns.last_position(self: app.App, name: string): session.Position?
	local history = self.doc.metadata.measures or {}
	local last = history[#history]
	local found = list.find(if last then last.positions else {}, function(position): boolean
		return position.name == name
	end)
	if found == nil then
		return nil
	end
	return { name = name, option = app.standing_option(self, found.option), confidence = found.confidence }
end

--- Returns the last turn of a persona in the debate, or nil.
function persona_turns.last_turn(self: app.App, name: string): session.Turn?
	local found: session.Turn? = nil
	for _, turn in self.doc.messageTurns do
		found = if turn.messageType == "discussion" and turn.sender.name == name then turn else found
	end
	return found
end

--- Returns what is wrong with a reply, or nil: it must have at least one point, and answer others.
function persona_turns.check_reply(self: app.App, value: app.Values, name: string, is_small: boolean): string?
	if is_small then
		small.keep_real_points(self, value)
	else
		value.points = list.filter(list.map(value.points, app.to_line), function(line: string): boolean
			return line ~= ""
		end)
	end
	if #value.points == 0 and #(value.responds or {}) == 0 then
		return "points: say at least one thing in a whole sentence of your own, and do not hand back an option"
	end
	local others = list.filter(value.responds or {} :: { app.Values }, function(response: app.Values): boolean
		return not list.some(self.points, function(point): boolean
			return point.id == response.to and point.by == name
		end)
	end)
	if value.responds ~= nil and #others == 0 then
		return "responds: those points are your own; answer a point of somebody else"
	end
	if not is_small then
		-- Whoever goes on from a point of their own, or answers one twice, says that beside their answers: it is not lost.
		local answered: { [string]: boolean } = {}
		local kept: { app.Values } = {}
		for _, response in value.responds or {} :: { app.Values } do
			if table.find(others, response) ~= nil and not answered[response.to] then
				answered[response.to] = true
				table.insert(kept, response)
			else
				table.insert(value.points, app.to_line(response.why))
			end
		end
		others = kept
	end
	value.responds = if value.responds ~= nil then others else nil
	return if is_small then nil else proposals.fault(self, value)
end

--- Returns all points of a reply, responses included, each once.
function persona_turns.points(value: app.Values, is_small: boolean): { string }
	local said = table.clone(value.points)
	for _, response in value.responds or {} :: { app.Values } do
		local line = app.to_line(response.why)
		if table.find(said, line) == nil then
			table.insert(said, line)
		end
	end
	return if is_small then small.without_repeats(said) else said
end

--- Returns who stands for what and recommends what, as a small mind reads it.
local function stands(self: app.App, name: string): { app.Values }
	local found: { app.Values } = {}
	for _, persona in self.seats do
		local turn = persona_turns.last_turn(self, persona.name)
		if turn ~= nil and persona.name ~= name then
			table.insert(found, { by = persona.name, stance = turn.metadata.stance, recommends = turn.metadata.recommends })
		end
	end
	return found
end

--- Returns what a small mind is told for its position.
local function small_vars(self: app.App, persona: personas.Persona, seen: { round.Point }): shape.Shape
	local vars = small.case_vars(self)
	vars.seen = list.map(seen, function(point: round.Point): app.Values
		return { id = point.id, by = point.by, text = point.text, own = point.by == persona.name }
	end)
	vars.older = small.earlier_points(self)
	vars.stands = if #seen > 0 then stands(self, persona.name) else {}
	vars.before = persona_turns.last_position(self, persona.name) or false
	vars.contrarian = table.find(persona.tags, "contrarian") ~= nil
	return vars
end

--- Returns the option that leads after the last cycle, or nil.
local function leading_option(self: app.App): string?
	local history: { agreement.Measure } = self.doc.metadata.measures or {}
	local last = history[#history]
	return if last ~= nil and last.leading ~= nil then app.standing_option(self, last.leading) else nil
end

--- Whether a persona's office is the case against what leads.
local function is_contrarian(persona: personas.Persona): boolean
	return table.find(persona.tags, "contrarian") ~= nil
end

--- Returns what is wrong with a reply by the office of its speaker, or nil: somebody argues against what leads.
local function office_fault(self: app.App, value: app.Values, persona: personas.Persona): string?
	if not is_contrarian(persona) or leading_option(self) == nil or value.responds == nil then
		return nil
	end
	local challenges = list.some(value.responds, function(response: app.Values): boolean
		return response.how == "challenges"
	end)
	return if challenges then nil else "responds: your office is the case against what leads: challenge one point that carries it"
end

--- Returns what a large mind is told at the end, behind the conversation.
local function large_vars(self: app.App, persona: personas.Persona, first: boolean): shape.Shape
	local leads = leading_option(self)
	local leading = if leads ~= nil then `{leads} ("{app.option_name(self, leads)}")` else false
	return {
		cycle = self.doc.debateCycles + 1,
		first = first,
		contrarian = is_contrarian(persona),
		leading = leading,
		before = persona_turns.last_position(self, persona.name) or false,
	}
end

--- Returns what a persona is asked in a cycle, when it has heard the points in `seen`.
function persona_turns.request(self: app.App, persona: personas.Persona, seen: { round.Point }): app.ModelRequest
	local is_small = app.is_small(self, persona)
	local ids: { string } = {}
	-- A large mind's are the same for all: whoever answers a point of their own is told so.
	local heard_points: { round.Point } = if is_small or #seen == 0 then seen else self.points :: { any }
	for _, point in heard_points do
		if not is_small or point.by ~= persona.name then
			table.insert(ids, point.id)
		end
	end
	return {
		prompt = "position",
		vars = if is_small then small_vars(self, persona, seen) else large_vars(self, persona, #seen == 0),
		schema = reply_schema(self, ids, is_small),
		check = function(value: app.Values): string?
			local fault = persona_turns.check_reply(self, value, persona.name, is_small)
			return fault or (if is_small then nil else office_fault(self, value, persona))
		end,
		persona = persona,
		label = persona.name,
		purpose = "council",
		temperature = persona.temperature or 0.7,
		small = is_small,
		looks = true,
		turn = { kind = "position", seen = seen },
	}
end

--- Returns the function that asks a persona in a cycle; its whole reply is also put into `heard`.
function persona_turns.speaker(self: app.App, heard: { [string]: Reply }): round.Speak
	return function(persona: round.Voice, seen: { round.Point }, _ids: { string }, _must: boolean): ({ string }?, { string }?)
		local is_small = app.is_small(self, persona)
		local value, made = app.ask_model(self, persona_turns.request(self, persona, seen))
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
		heard[persona.slug] = { value = value, made = made :: app.Made, at = clock.now(), small = is_small }
		return persona_turns.points(value, is_small), refers
	end
end

--- Asks a persona a question of the user's; `guest` where it does not sit here. Returns the reply, or nil.
function persona_turns.answer(self: app.App, persona: personas.Persona, question: string, seen: { app.Point }, guest: boolean): Reply?
	local is_small = app.is_small(self, persona)
	local vars: app.Values = { question = question, guest = guest }
	if is_small then
		vars = small.case_vars(self)
		vars.seen, vars.question = seen, question
	end
	local value, made = app.ask_model(self, {
		prompt = "reply",
		vars = vars,
		schema = shape.object({ "points", "recommends", "stance", "sure" }, {
			points = shape.list(shape.text(3, small.most(is_small, ANSWER)), 1, 3),
			recommends = shape.text(3, small.most(is_small, RECOMMENDATION)),
			stance = { enum = persona_turns.stances(self) },
			sure = { type = "integer", minimum = 0, maximum = 100 },
		}),
		check = function(value: app.Values): string?
			return persona_turns.check_reply(self, value, persona.name, is_small)
		end,
		persona = persona,
		label = persona.name,
		purpose = "council",
		small = is_small,
		looks = true,
	})
	return if value ~= nil then { value = value, made = made :: app.Made, at = clock.now(), small = is_small } else nil
end

--- Returns the text of a turn.
local function render_turn(
	self: app.App,
	value: app.Values,
	before: session.Position?,
	responds: { session.Response },
	ids: { [string]: string },
	office: string?
): string
	local undecided = value.stance == agreement.UNDECIDED
	local name = model_text.to_line(app.option_name(self, value.stance), OPTION)
	local head = if undecided then self.t("turn.undecided") else `{value.stance}: {name}`
	local was = if before and before.option ~= value.stance then self.t("turn.before", { option = before.option }) else ""
	local lines: { string } = { `**{head}** ({self.t("turn.confidence", { sure = value.sure })}{was})`, "" }
	for _, point in value.points do
		table.insert(lines, `- {ids[point] or ""} {point}`)
	end
	for _, response in responds do
		local how = self.t(if response.how == "challenges" then "turn.against" else "turn.with", { name = response.name, id = response.to })
		table.insert(lines, `- {ids[response.why] or ""} {how} ("{model_text.to_line(response.point, OPTION)}"): {response.why}`)
	end
	for _, proposal in value.proposed or {} :: { session.Option } do
		if proposal.id ~= value.stance then
			table.insert(lines, `- **{self.t("turn.proposes", { id = proposal.id })}** {proposal.text}`)
		end
	end
	if office ~= nil then
		local id = office
		table.insert(lines, "")
		table.insert(lines, `*{self.t("turn.office", { id = id, name = model_text.to_line(app.option_name(self, id), OPTION) })}*`)
	end
	table.insert(lines, "")
	table.insert(lines, `*{self.t("turn.recommends")}* {app.to_line(value.recommends)}`)
	return table.concat(lines, "\n")
end

--- What the first, and what a later turn sounds like, by what it does.
local function tone_of(responds: { session.Response }, number: number, asked: boolean): string
	if asked then
		return "answering"
	end
	for _, response in responds do
		if response.how == "challenges" then
			return "challenging"
		end
	end
	return if number == 1 then "opening" else "building"
end

local function text_of(point: app.Point): string
	return point.text
end

--- Records and shows what one persona said, and adds its points to those that others can take up. Returns the turn, and it as
--- others read it.
function persona_turns.record(self: app.App, name: string, heard: Reply, number: number, asked: boolean): (session.Turn, string)
	local value = heard.value
	local by: { [string]: app.Point } = {}
	for _, point in self.points do
		by[point.id] = point
	end
	local made: { app.Point }, ids: { [string]: string } = {}, {}
	for index, line in persona_turns.points(value, heard.small) do
		ids[line] = `P{#self.points + index}`
		table.insert(made, { id = ids[line], by = name, text = line, turnId = "", cycle = number })
	end
	local responds: { session.Response } = json.array({} :: { session.Response })
	for _, response in value.responds or {} :: { app.Values } do
		local point = by[response.to]
		local why = app.to_line(response.why)
		table.insert(responds, {
			how = response.how,
			name = point.by,
			turnId = point.turnId,
			point = point.text,
			to = point.id,
			id = ids[why],
			why = why,
		})
	end
	local lines = look.cited(`{value.recommends}\n{table.concat(list.map(made, text_of), "\n")}`, self.shown)
	local cites = list.map(lines, function(line: look.Line): string
		return `{line.path}:{line.number}`
	end)
	local persona = list.find(self.seats, function(seat): boolean
		return seat.name == name
	end)
	local office = if persona ~= nil and is_contrarian(persona) and not heard.small and not asked then leading_option(self) else nil
	local turn = app.record_turn(self, {
		sender = app.participant_of(self, name),
		recipient = if asked then session.user(self.doc) else nil,
		messageType = "discussion",
		content = render_turn(self, value, persona_turns.last_position(self, name), responds, ids, office),
		timestamp = heard.at,
		number = number,
		metadata = {
			stance = value.stance,
			confidence = value.sure,
			recommends = app.to_line(value.recommends),
			responds = responds,
			proposed = value.proposed,
			tone = tone_of(responds, number, asked),
			model = heard.made.model,
			latencySeconds = heard.made.latencySeconds,
			looked = heard.made.looked,
			cites = if #cites > 0 then json.array(cites) else nil,
		},
	})
	for _, point in made do
		point.turnId = turn.turnId
		table.insert(self.points, point)
	end
	ui.say(turn.content, { from = `{name} #{turn.sequenceNumber}` })
	return turn, conversation.turn(turn, made, conversation.new_lines(self, lines))
end

return persona_turns
