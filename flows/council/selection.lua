--!strict
--- Chooses what is debated and by whom: classifies the request, turns it into options, and selects personas with a reason each.

local app = require("./app")
local conversation = require("./conversation")
local json = require("@nietz/json")
local members = require("./members")
local options = require("./options")
local personas = require("@nietz/personas")
local random = require("@nietz/random")
local session = require("./session")
local shape = require("../common/shape")
local similarity = require("../common/similarity")
local small = require("./small")
local ui = require("@nietz/ui")

local selection = {}

local LETTERS = "ABCDEFGH"
local MIN_SEATS, MAX_SEATS = 2, 4

local function selection_schema(named: boolean, is_small: boolean): shape.Shape
	local function line(letters: number): shape.Shape
		return shape.text(3, small.most(is_small, letters))
	end
	local properties: { [string]: shape.Shape } = {
		kind = shape.text(3, 40),
		options = shape.list(
			if is_small then line(120) else shape.object({ "name", "text" }, { name = shape.text(2), text = shape.text(3) }),
			2,
			if is_small then 4 else 5
		),
		topic = line(160),
	}
	if not named then
		local names: { string } = {}
		for _, persona in members.debaters() do
			table.insert(names, persona.name)
		end
		properties.personas =
			shape.list(shape.object({ "name", "reason" }, { name = { enum = names }, reason = line(140) }), MIN_SEATS, MAX_SEATS)
	end
	local order = { "kind", "topic", "options" }
	if not named then
		table.insert(order, "personas")
	end
	return shape.object(order, properties)
end

--- Returns the options with letters, without doubles: of a small mind texts, of a large one names and texts.
local function with_letters(raw: { unknown }): { session.Option }
	local found: { session.Option } = json.array({})
	local seen: { string } = {}
	for _, one in raw do
		local given: app.Values = if type(one) == "table" then one :: any else { text = one }
		local text: string = given.text
		-- Models often letter them, too.
		local line = string.gsub(app.to_line(text), "^[A-Ha-h1-8][%)%.:]%s+", "")
		local double = false
		for _, other in seen do
			double = double or (similarity.of_texts(line, other) > 0.9 and #similarity.words(line) == #similarity.words(other))
		end
		-- A single word such as "yes" is no option that somebody could argue for.
		if not double and string.find(line, "%S%s+%S") ~= nil then
			table.insert(seen, line)
			local name: string? = given.name
			table.insert(found, {
				id = string.sub(LETTERS, #seen, #seen),
				text = line,
				name = if name ~= nil then app.to_line(name) else nil,
			})
		end
	end
	return found
end

--- Who was chosen, and why each of them.
type Chosen = { seats: { personas.Persona }, reasons: { string } }

local function add_seat(chosen: Chosen, persona: personas.Persona, reason: string)
	for _, seat in chosen.seats do
		if seat.slug == persona.slug then
			return
		end
	end
	table.insert(chosen.seats, persona)
	table.insert(chosen.reasons, `{persona.name}: {reason}`)
end

--- Whether nobody was chosen whom the contrarian could argue with.
local function has_no_opponent(chosen: Chosen): boolean
	for _, seat in chosen.seats do
		if seat.slug ~= members.contrarian().slug then
			return false
		end
	end
	return true
end

--- Chooses who debates, and records it.
function selection.run(self: app.App, named: { personas.Persona }?)
	local is_small = app.is_small(self, self.moderator)
	local vars: app.Values = if is_small then small.case_vars(self) else {}
	local kind, slugs = members.classify(self.doc.requestText)
	vars.personas = {}
	for _, persona in members.debaters() do
		-- Personas that fit the request's words come first, because small models choose from the top.
		local place = if table.find(slugs, persona.slug) then table.find(slugs, persona.slug) :: number else #vars.personas + 1
		table.insert(vars.personas, math.min(place, #vars.personas + 1), { name = persona.name, summary = persona.summary })
	end
	vars.named = named ~= nil
	local written = app.ask_model(self, {
		prompt = "select",
		vars = vars,
		schema = selection_schema(named ~= nil, is_small),
		check = function(value: app.Values): string?
			return if #with_letters(value.options) < 2 then "options must differ from each other, and say what is done" else nil
		end,
		persona = self.moderator,
		label = self.t("label.select"),
		purpose = "council",
		temperature = 0.2,
		small = is_small,
	})
	local chosen: Chosen = { seats = {}, reasons = {} }
	if written == nil then
		ui.say(self.t("select.by_words", { kind = kind }))
	end
	local value: app.Values = written
		or { kind = kind, options = string.split(self.t("select.options"), "\n"), topic = self.doc.requestText, personas = {} }
	if named ~= nil then
		for _, persona in named :: { personas.Persona } do
			add_seat(chosen, persona, self.t("select.named"))
		end
	else
		for _, item in value.personas do
			add_seat(chosen, members.find(item.name) :: personas.Persona, app.to_line(item.reason))
		end
		if has_no_opponent(chosen) then
			for _, slug in slugs do
				add_seat(chosen, members.find(slug) :: personas.Persona, self.t("select.by_kind", { kind = kind }))
			end
		end
	end
	add_seat(chosen, members.contrarian(), self.t("select.contrarian"))
	self.seats = chosen.seats
	for index, name in options.seat_models(self.params.models) do
		for place, seat in self.seats do
			if (place - 1) % #options.seat_models(self.params.models) == index - 1 then
				self.models[seat.slug] = name
			end
		end
	end
	local selected: { session.Participant } = json.array({} :: { session.Participant })
	local overridden: { string } = json.array({} :: { string })
	for _, persona in chosen.seats do
		table.insert(selected, app.new_participant(persona, true))
	end
	for _, persona in named or {} :: { personas.Persona } do
		table.insert(overridden, persona.name)
	end
	local list = with_letters(value.options)
	app.record_event(self, "selected", {
		topic = app.to_line(value.topic),
		options = list,
		selection = {
			selectionId = random.uuid(),
			sessionId = self.doc.sessionId,
			requestClassification = app.to_line(value.kind),
			selectedPersonas = selected,
			reason = table.concat(chosen.reasons, "; "),
			userOverride = named ~= nil,
			overriddenPersonas = overridden,
			createdAt = self.doc.updatedAt,
		},
	})
	conversation.tell_table(self, self.seats)
	local lines: { string } = { self.t("select.head", { topic = app.to_line(value.topic), kind = app.to_line(value.kind) }), "" }
	for _, reason in chosen.reasons do
		table.insert(lines, `- {reason}`)
	end
	table.insert(lines, "")
	table.insert(lines, self.t("select.the_options"))
	table.insert(lines, "")
	for _, option in list do
		local name = option.name
		table.insert(lines, if name ~= nil then `- **{option.id}** *{name}:* {option.text}` else `- **{option.id}** {option.text}`)
	end
	ui.say(table.concat(lines, "\n"))
end

return selection
