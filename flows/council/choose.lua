--!strict
--- Who debates, and about what: the request is classified, turned into options, and personas are chosen with a reason.

local app = require("./app")
local json = require("@nietz/json")
local members = require("./members")
local personas = require("@nietz/personas")
local random = require("@nietz/random")
local shape = require("../common/shape")
local similarity = require("../common/similarity")
local ui = require("@nietz/ui")

local choose = {}

local LETTERS = "ABCDEFGH"
local FEWEST, MOST = 2, 4
--- Where no model could name any.
local PLAIN = { "Do it as proposed", "Do not do it", "Do a smaller, reversible part of it first" }

local function schema(named: boolean): { [string]: any }
	local properties: { [string]: any } = {
		kind = shape.text(3, 40),
		options = shape.list(shape.text(3, 120), 2, 4),
		topic = shape.text(3, 160),
	}
	if not named then
		local names: { string } = {}
		for _, persona in members.debaters() do
			table.insert(names, persona.name)
		end
		properties.personas =
			shape.list(shape.object({ "name", "reason" }, { name = { enum = names }, reason = shape.text(3, 140) }), FEWEST, MOST)
	end
	local order = { "kind", "topic", "options" }
	if not named then
		table.insert(order, "personas")
	end
	return shape.object(order, properties)
end

--- Returns options with letters, none of them twice.
local function lettered(raw: { string }): { any }
	local found: { any } = json.array({})
	local seen: { string } = {}
	for _, text in raw do
		-- Models like to letter them themselves.
		local line = string.gsub(app.line(text), "^[A-Ha-h1-8][%)%.:]%s+", "")
		local double = false
		for _, other in seen do
			double = double or (similarity.of_texts(line, other) > 0.9 and #similarity.words(line) == #similarity.words(other))
		end
		-- A bare "yes" is no option: nobody could stand for it.
		if not double and string.find(line, "%S%s+%S") ~= nil then
			table.insert(seen, line)
			table.insert(found, { id = string.sub(LETTERS, #seen, #seen), text = line })
		end
	end
	return found
end

--- Who was chosen, and why each of them.
type Chosen = { seats: { personas.Persona }, reasons: { string } }

local function add(chosen: Chosen, persona: personas.Persona, reason: string)
	for _, seat in chosen.seats do
		if seat.slug == persona.slug then
			return
		end
	end
	table.insert(chosen.seats, persona)
	table.insert(chosen.reasons, `{persona.name}: {reason}`)
end

--- Chooses who debates, and records it.
function choose.run(self: app.App, named: { personas.Persona }?)
	local vars = app.context(self)
	local kind, slugs = members.route(self.doc.requestText)
	vars.personas = {}
	for _, persona in members.debaters() do
		-- Those whom the request's own words call come first: small models take from the top.
		local place = if table.find(slugs, persona.slug) then table.find(slugs, persona.slug) :: number else #vars.personas + 1
		table.insert(vars.personas, math.min(place, #vars.personas + 1), { name = persona.name, summary = persona.summary })
	end
	vars.named = named ~= nil
	local value = app.think(self, {
		prompt = "select",
		vars = vars,
		schema = schema(named ~= nil),
		check = function(value: any): string?
			return if #lettered(value.options) < 2 then "options must differ from each other, and say what is done" else nil
		end,
		persona = self.moderator,
		label = "Calling the council",
		arm = "council",
		temperature = 0.2,
	})
	local chosen: Chosen = { seats = {}, reasons = {} }
	if value == nil then
		ui.say(`The request is taken as {kind}, by its words; the options are the plain ones.`)
		value = { kind = kind, options = PLAIN, topic = self.doc.requestText, personas = {} }
	end
	if named ~= nil then
		for _, persona in named :: { personas.Persona } do
			add(chosen, persona, "named by you")
		end
	else
		for _, item in value.personas do
			add(chosen, members.find(item.name) :: personas.Persona, app.line(item.reason))
		end
		if #chosen.seats == 0 then
			for _, slug in slugs do
				add(chosen, members.find(slug) :: personas.Persona, `asked where a request is about {kind}`)
			end
		end
	end
	add(chosen, members.contrarian(), "in every council, so that agreement is tested")
	self.seats = chosen.seats
	local selected: { any } = json.array({})
	local overridden: { string } = json.array({} :: { string })
	for _, persona in chosen.seats do
		table.insert(selected, app.participant(persona))
	end
	for _, persona in named or {} :: { personas.Persona } do
		table.insert(overridden, persona.name)
	end
	local list = lettered(value.options)
	app.happen(self, "selected", {
		topic = app.line(value.topic),
		options = list,
		selection = {
			selectionId = random.uuid(),
			sessionId = self.doc.sessionId,
			requestClassification = app.line(value.kind),
			selectedPersonas = selected,
			reason = table.concat(chosen.reasons, "; "),
			userOverride = named ~= nil,
			overriddenPersonas = overridden,
			createdAt = self.doc.updatedAt,
		},
	})
	local lines: { string } = { `**The council on: {app.line(value.topic)}** ({app.line(value.kind)})`, "" }
	for _, reason in chosen.reasons do
		table.insert(lines, `- {reason}`)
	end
	table.insert(lines, "")
	table.insert(lines, "The options:")
	table.insert(lines, "")
	for _, option in list do
		table.insert(lines, `- **{option.id}** {option.text}`)
	end
	ui.say(table.concat(lines, "\n"))
end

return choose
