--!strict
--- Who disagrees with the answer, in their own words: only whoever would still decide otherwise. And where everybody stood at the
--- end.

local agreement = require("./agreement")
local app = require("./app")
local json = require("@nietz/json")
local persona_turns = require("./persona_turns")
local personas = require("@nietz/personas")
local session = require("./session")
local shape = require("../common/shape")
local small = require("./small")
local sources = require("./sources")
local task = require("@nietz/task")

local dissent = {}

--- Below this confidence in another option a small mind is not asked why: it would have to make a dissent up.
local HARDLY = 20

--- What somebody says to the decision, and by which model.
type Reply = { value: app.Values?, made: app.Made? }

local function ask(self: app.App, persona: personas.Persona, position: agreement.Position, made: session.Decision): (app.Values?, app.Made?)
	local is_small = app.is_small(self, persona)
	local vars: app.Values = if is_small then small.case_vars(self) else {}
	vars.decision, vars.option = made.decision.text, app.option_text(self, made.option)
	vars.stance, vars.confidence = app.option_text(self, position.option), position.confidence
	local order = { "report", "would_convince" }
	local members: { [string]: shape.Shape } = {
		report = shape.text(3, small.most(is_small, 400)),
		would_convince = if is_small then shape.text(3, 200) else { type = "string" },
	}
	if is_small then
		vars.points = small.recent_points(self)
	else
		table.insert(order, 1, "dissents")
		members.dissents = { type = "boolean" }
	end
	return app.ask_model(self, {
		prompt = "minority",
		vars = vars,
		schema = shape.object(order, members),
		persona = persona,
		label = persona.name,
		purpose = "council",
		small = is_small,
		looks = true,
	})
end

--- Asks each persona that stood for another option, side by side. Returns the minority reports, and who carries the decision all
--- the same.
function dissent.reports(self: app.App, last: agreement.Measure, made: session.Decision): ({ session.Point }, { session.Point })
	local against: { [string]: agreement.Position } = {}
	for _, position in last.positions do
		local elsewhere = position.option ~= made.option and position.option ~= agreement.UNDECIDED
		if elsewhere and made.option ~= agreement.UNDECIDED then
			against[position.name] = position
		end
	end
	local branches: { [string]: () -> Reply } = {}
	for _, persona in self.seats do
		local position = against[persona.name]
		if position ~= nil and not (app.is_small(self, persona) and position.confidence < HARDLY) then
			branches[persona.slug] = function(): Reply
				local value, by = ask(self, persona, position, made)
				return { value = value, made = by }
			end
		end
	end
	local reports: { session.Point }, carried: { session.Point } = json.array({} :: { session.Point }), json.array({} :: { session.Point })
	local settled = task.all(branches)
	for _, persona in self.seats do
		local position, reply = against[persona.name], settled[persona.slug]
		local turn = persona_turns.last_turn(self, persona.name)
		if position ~= nil and reply ~= nil and turn ~= nil then
			local from = json.array({ { name = persona.name, turnId = turn.turnId } })
			local value, made_by = reply.value, reply.made
			if value ~= nil and value.dissents == false then
				table.insert(carried, { text = app.to_line(value.report), from = from, made = made_by })
			else
				-- Where it gave no report, its last position is on the record all the same.
				local text = if value == nil
					then `{self.t("dissent.stands", { option = app.option_text(self, position.option), sure = position.confidence })} {turn.metadata.recommends}`
					elseif value.would_convince == "" then app.to_line(value.report)
					else `{app.to_line(value.report)} *{self.t("dissent.convince")}* {app.to_line(value.would_convince)}`
				table.insert(reports, { text = text, from = from, made = made_by })
			end
		end
	end
	return reports, carried
end

--- Records the last position of each persona: its minority report, or where it stands and what it recommends.
function dissent.conclude(self: app.App, last: agreement.Measure, made: session.Decision)
	for _, position in last.positions do
		local own: sources.Point? = nil
		for _, report in made.minorityReports or {} :: { session.Point } do
			own = if report.from[1].name == position.name then report else own
		end
		local turn = persona_turns.last_turn(self, position.name) :: session.Turn
		local text = if own ~= nil
			then own.text
			else `{self.t("dissent.stands", { option = app.option_text(self, position.option), sure = position.confidence })} {turn.metadata.recommends}`
		local by: session.Made = if own then own.made or {} else {}
		app.record_turn(self, {
			sender = app.participant_of(self, position.name),
			messageType = "conclusion",
			content = text,
			number = self.doc.debateCycles,
			metadata = {
				stance = position.option,
				confidence = position.confidence,
				dissents = own ~= nil,
				model = by.model,
				latencySeconds = by.latencySeconds,
			},
		})
	end
end

return dissent
