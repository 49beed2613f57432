--!strict
--- An answer without a writer: where the moderator's reply cannot be used, the answer is put together from the positions of the
--- debate and from what was said, word for word. It says of itself that it is.

local agreement = require("./agreement")
local app = require("./app")
local json = require("@nietz/json")
local list = require("../common/list")
local persona_turns = require("./persona_turns")
local session = require("./session")
local sources = require("./sources")

local composed = {}

--- The most lines of one kind.
local MOST = 4

--- Returns the positions, the surest first.
local function by_confidence(last: agreement.Measure, wanted: (position: agreement.Position) -> boolean): { agreement.Position }
	local found = list.filter(last.positions, wanted)
	table.sort(found, function(one, other): boolean
		return if one.confidence == other.confidence then one.name < other.name else one.confidence > other.confidence
	end)
	return found
end

--- Returns what somebody recommended last, as a line of the answer.
local function recommendation(self: app.App, name: string): sources.Point
	local turn = persona_turns.last_turn(self, name) :: session.Turn
	return { text = turn.metadata.recommends, from = json.array({ { name = name, turnId = turn.turnId } }) }
end

--- Returns the last points of these, one each.
local function last_points(self: app.App, positions: { agreement.Position }): { sources.Point }
	local found: { sources.Point } = json.array({} :: { sources.Point })
	for _, position in positions do
		local last: app.Point? = nil
		for _, point in self.points do
			last = if point.by == position.name then point else last
		end
		if last ~= nil and #found < MOST then
			table.insert(found, sources.point(self, last.text, { last.id }))
		end
	end
	return found
end

--- Returns the decision for an option.
function composed.decision(self: app.App, option: string, last: agreement.Measure): any
	local with = by_confidence(last, function(position): boolean
		return position.option == option
	end)
	local against = by_confidence(last, function(position): boolean
		return position.option ~= option
	end)
	-- Where several share the first place, the one that is taken has supporters; where nobody was sure of anything, anybody.
	local first = with[1] or last.positions[1]
	local steps: { sources.Point } = json.array({} :: { sources.Point })
	for index, position in with do
		if index > 1 and #steps < MOST then
			table.insert(steps, recommendation(self, position.name))
		end
	end
	local rejected: { sources.Point } = json.array({} :: { sources.Point })
	for _, other in app.open_options(self) do
		if other.id ~= option then
			local stands = by_confidence(last, function(position): boolean
				return position.option == other.id
			end)
			local why = if #stands == 0
				then self.t("composed.nobody")
				else self.t("composed.fewer", {
					who = table.concat(
						list.map(stands, function(position): string
							return position.name
						end),
						", "
					),
				})
			table.insert(rejected, { option = other.id, text = why, from = recommendation(self, first.name).from })
		end
	end
	local decision = recommendation(self, first.name)
	decision.text = `{app.option_text(self, option)}. {decision.text}`
	return {
		composed = true,
		option = option,
		decision = decision,
		tradeoffs = last_points(self, against),
		reasons = last_points(self, with),
		rejected = rejected,
		nextSteps = steps,
	}
end

--- Returns that there is no decision.
function composed.undecided(self: app.App): any
	local history = self.doc.metadata.measures
	local positions = (history[#history] :: agreement.Measure).positions
	local open: { sources.Point } = json.array({} :: { sources.Point })
	for _, position in positions do
		table.insert(open, recommendation(self, position.name))
	end
	return {
		composed = true,
		option = agreement.UNDECIDED,
		decision = { text = self.t("composed.undecided"), from = open[1].from },
		open = open,
	}
end

--- The lists of an answer that no large mind wrote.
local LISTS = { "reasons", "tradeoffs", "rejected", "assumptions", "open", "nextSteps", "known" }

--- Returns an answer that no large mind wrote as who reviews it reads it: line by line.
function composed.told(self: app.App, made: session.Decision): string
	local values: app.Values = made :: any
	local lines: { string } = { `decision: {made.decision.text}` }
	for _, name in LISTS do
		for place, point in (values[name] or {}) :: { session.Point } do
			local head = if point.option ~= nil then `"{app.option_name(self, point.option)}": ` else ""
			table.insert(lines, `{name} {place}: {head}{point.text}`)
		end
	end
	return table.concat(lines, "\n")
end

return composed
