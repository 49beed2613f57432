--!strict
--- Who looks through the answer before it goes out: whoever stood elsewhere, and the contrarian in any case. They read all of it, say
--- which hole it has, and whether they would still decide otherwise, in their own words. And where everybody stood at the end.

local agreement = require("./agreement")
local app = require("./app")
local json = require("@nietz/json")
local list = require("../common/list")
local mend = require("./mend")
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

--- What somebody says to the answer, and by which model.
type Reply = { value: app.Values?, made: app.Made? }
--- What came of a review.
export type Review = { reports: { session.Point }, carried: { session.Point }, holes: { mend.Found } }

--- Returns what a persona is asked that reviews an answer.
function dissent.request(self: app.App, persona: personas.Persona, position: agreement.Position, made: session.Decision): app.ModelRequest
	local is_small = app.is_small(self, persona)
	local vars: app.Values = if is_small then small.case_vars(self) else {}
	vars.decision, vars.option = made.decision.text, app.option_text(self, made.option)
	vars.stance, vars.confidence = app.option_name(self, position.option), position.confidence
	vars.elsewhere = position.option ~= made.option
	local order = { "report", "would_convince" }
	local members: { [string]: shape.Shape } = {
		report = shape.text(3, small.most(is_small, 400)),
		would_convince = if is_small then shape.text(3, 200) else { type = "string" },
	}
	if is_small then
		vars.points = small.recent_points(self)
	else
		order = { "hole", "dissents", "report", "would_convince" }
		members.hole, members.dissents = shape.text(0), { type = "boolean" }
	end
	return {
		prompt = "minority",
		vars = vars,
		schema = shape.object(order, members),
		persona = persona,
		label = persona.name,
		purpose = "council",
		small = is_small,
		looks = true,
		turn = { kind = "review", position = position, made = made },
	}
end

--- Returns who reviews an answer, and where they stand.
local function reviewers(self: app.App, last: agreement.Measure, made: session.Decision): { [string]: agreement.Position }
	local found: { [string]: agreement.Position } = {}
	for _, persona in self.seats do
		for _, position in last.positions do
			local stands = position.name == persona.name and position.option ~= agreement.UNDECIDED
			local is_small = app.is_small(self, persona)
			local elsewhere = position.option ~= made.option and not (is_small and position.confidence < HARDLY)
			local office = not is_small and table.find(persona.tags, "contrarian") ~= nil
			if stands and made.option ~= agreement.UNDECIDED and (elsewhere or office) then
				found[persona.name] = position
			end
		end
	end
	return found
end

--- Asks the reviewers, side by side. Returns the minority reports, who carries the decision all the same, and the holes they found.
function dissent.review(self: app.App, last: agreement.Measure, made: session.Decision): Review
	local asked = reviewers(self, last, made)
	local branches: { [string]: () -> Reply } = {}
	for _, persona in self.seats do
		local position = asked[persona.name]
		if position ~= nil then
			branches[persona.slug] = function(): Reply
				local value, by = app.ask_model(self, dissent.request(self, persona, position, made))
				return { value = value, made = by }
			end
		end
	end
	local found: Review = { reports = json.array({}), carried = json.array({}), holes = {} }
	local settled = task.all(branches)
	for _, persona in self.seats do
		local position, reply = asked[persona.name], settled[persona.slug]
		local turn = persona_turns.last_turn(self, persona.name)
		if position == nil or reply == nil or turn == nil then
			continue
		end
		local from = json.array({ { name = persona.name, turnId = turn.turnId } })
		local value, made_by = reply.value, reply.made
		local hole = if value ~= nil then app.to_line(value.hole or "") else ""
		if hole ~= "" then
			table.insert(found.holes, { name = persona.name, turnId = turn.turnId, text = hole })
		end
		local elsewhere = position.option ~= made.option
		if value ~= nil and value.dissents == false then
			if elsewhere then
				table.insert(found.carried, { text = app.to_line(value.report), from = from, made = made_by })
			end
		elseif value ~= nil then
			local convince = if value.would_convince ~= "" then app.to_line(value.would_convince) else nil
			table.insert(found.reports, { text = app.to_line(value.report), convince = convince, from = from, made = made_by })
		elseif elsewhere then
			-- Where it gave no report, its last position is on the record all the same.
			table.insert(found.reports, { text = dissent.last_position(self, position), from = from })
		end
	end
	return found
end

--- Returns where somebody stands at the end and what they recommend, in words.
function dissent.last_position(self: app.App, position: agreement.Position): string
	local turn = persona_turns.last_turn(self, position.name) :: session.Turn
	local name = app.option_name(self, position.option)
	return `{self.t("dissent.stands", { option = name, sure = position.confidence })} {turn.metadata.recommends}`
end

--- Returns a review of a draft as one of the answer, which may take another option: who stood for that one dissents no more, and who
--- stood for the draft's has not been asked.
function dissent.of_option(self: app.App, review: Review, last: agreement.Measure, option: string): Review
	local stood: { [string]: string } = {}
	for _, position in last.positions do
		stood[position.name] = position.option
	end
	local function is_elsewhere(report: session.Point): boolean
		return stood[report.from[1].name] ~= option
	end
	local found: Review = {
		reports = json.array(list.filter(review.reports, function(report): boolean
			return is_elsewhere(report) or report.convince ~= nil
		end)),
		carried = json.array(list.filter(review.carried, is_elsewhere)),
		holes = review.holes,
	}
	for _, position in last.positions do
		local turn = persona_turns.last_turn(self, position.name)
		local is_told = position.option == option or position.option == agreement.UNDECIDED
		for _, reports in { review.reports, review.carried } do
			is_told = is_told or list.some(reports, function(report): boolean
				return report.from[1].name == position.name
			end)
		end
		if not is_told and turn ~= nil then
			local from = json.array({ { name = position.name, turnId = turn.turnId } })
			table.insert(found.reports, { text = dissent.last_position(self, position), from = from })
		end
	end
	return found
end

--- Returns a minority report in one text.
function dissent.report_text(self: { t: app.Translate }, report: session.Point): string
	return if report.convince == nil then report.text else `{report.text} *{self.t("dissent.convince")}* {report.convince}`
end

--- Records the last position of each persona: its minority report, or where it stands and what it recommends.
function dissent.conclude(self: app.App, last: agreement.Measure, made: session.Decision)
	for _, position in last.positions do
		local own: sources.Point? = nil
		for _, report in made.minorityReports or {} :: { session.Point } do
			own = if report.from[1].name == position.name then report else own
		end
		local by: session.Made = if own then own.made or {} else {}
		app.record_turn(self, {
			sender = app.participant_of(self, position.name),
			messageType = "conclusion",
			content = if own ~= nil then dissent.report_text(self, own) else dissent.last_position(self, position),
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
