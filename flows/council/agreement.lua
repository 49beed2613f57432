--!strict
--- How far a council agrees, in figures: positions, how much of the confidence is behind each option, who moved, and how much
--- was new. Only these figures end a debate, and no model's impression. Pure, so that they can be tested.

local json = require("@nietz/json")
local list = require("../common/list")
local session = require("./session")
local similarity = require("../common/similarity")
local translations = require("../common/translations")

local agreement = {}

--- The position of one persona after a cycle; `option` is `undecided` where it has not chosen.
export type Position = session.Position
export type Measure = session.Measure
export type Option = session.Option

agreement.UNDECIDED = "undecided"
--- From this percentage of all confidence behind one option on, the council agrees.
agreement.CONVERGED = 80
--- Where at most this percentage of the points of a cycle is new, nothing new was said.
agreement.NOTHING_NEW = 20
--- Below this average change of confidence nobody has moved.
agreement.MIN_DRIFT = 10
--- Two points that share more than this say the same.
agreement.SAME = 0.6

--- Returns how many of these points nobody has said before in nearly the same words.
function agreement.count_new(points: { string }, before: { string }): number
	local count = 0
	local seen: { similarity.Stems } = {}
	for _, text in before do
		table.insert(seen, similarity.stems(text))
	end
	for _, text in points do
		local own = similarity.stems(text)
		local new = true
		for _, other in seen do
			new = new and similarity.of_stems(own, other) <= agreement.SAME
		end
		count += if new then 1 else 0
		table.insert(seen, own)
	end
	return count
end

local function support(positions: { Position }): ({ [string]: number }, string?)
	local sums: { [string]: number } = {}
	local total = 0
	for _, position in positions do
		total += position.confidence
		if position.option ~= agreement.UNDECIDED then
			sums[position.option] = (sums[position.option] or 0) + position.confidence
		end
	end
	local leading: string?, most, tie = nil, 0, false
	for option, sum in sums do
		if sum > most then
			leading, most, tie = option, sum, false
		elseif sum == most then
			tie = true
		end
	end
	for option, sum in sums do
		sums[option] = if total > 0 then math.round(100 * sum / total) else 0
	end
	return sums, if tie or most == 0 then nil else leading
end

local function position_of(positions: { Position }, name: string): Position?
	return list.find(positions, function(position): boolean
		return position.name == name
	end)
end

--- Returns the figures of a cycle. `before` are the positions of the cycle before it.
function agreement.measure(cycle: number, positions: { Position }, before: { Position }, points: { string }, earlier: { string }): Measure
	local sums, leading = support(positions)
	local moved: { any } = json.array({})
	local shift, count = 0, 0
	for _, position in positions do
		local old = position_of(before, position.name)
		if old ~= nil then
			count += 1
			shift += math.abs(position.confidence - old.confidence)
			if old.option ~= position.option then
				table.insert(moved, { name = position.name, from = old.option, to = position.option })
			end
		end
	end
	return {
		cycle = cycle,
		support = sums,
		leading = leading,
		positions = json.array(table.clone(positions)),
		moved = moved,
		drift = if count > 0 then math.round(shift / count) else 0,
		said = #points,
		new = agreement.count_new(points, earlier),
	}
end

local function is_stable(one: Measure): boolean
	return one.cycle > 1 and #one.moved == 0 and one.drift < agreement.MIN_DRIFT
end

--- Whether nobody stands for an option.
function agreement.is_undecided(one: Measure): boolean
	return not list.some(one.positions, function(position): boolean
		return position.option ~= agreement.UNDECIDED
	end)
end

--- Returns why the debate is over after these cycles, or nil. After the first cycle only the limit ends it: nobody has heard the
--- others yet.
function agreement.outcome(history: { Measure }, limit: number): string?
	local last, before = history[#history], history[#history - 1]
	if last.cycle >= 2 then
		if agreement.is_undecided(last) and is_stable(last) then
			return "undecided"
		elseif last.leading ~= nil and last.support[last.leading] >= agreement.CONVERGED then
			return "converged"
		elseif is_stable(last) and before ~= nil and is_stable(before) then
			return "deadlock"
		elseif #last.moved == 0 and last.new * 100 <= agreement.NOTHING_NEW * last.said then
			return "nothing_new"
		end
	end
	return if last.cycle >= limit then "limit_reached" else nil
end

local function supporters(one: Measure, option: string): string
	local found: { string } = {}
	for _, position in one.positions do
		if position.option == option then
			table.insert(found, `{position.name} {position.confidence}`)
		end
	end
	return table.concat(found, ", ")
end

--- Returns a paragraph on the positions and on who moved.
function agreement.summary(one: Measure, options: { Option }, t: translations.Translate): string
	local parts: { string } = {}
	for _, option in options do
		local who = supporters(one, option.id)
		if who ~= "" then
			-- Without a name it would be told whole each time.
			local label = if option.name ~= nil then `{option.id} ({option.name})` else option.id
			table.insert(parts, t("summary.option", { id = label, percent = one.support[option.id], who = who }))
		end
	end
	local open = supporters(one, agreement.UNDECIDED)
	if open ~= "" then
		table.insert(parts, t("summary.undecided", { who = open }))
	end
	for _, move in one.moved do
		table.insert(parts, t("summary.moved", { who = move.name, from = move.from, to = move.to }))
	end
	if one.cycle > 1 and #one.moved == 0 then
		table.insert(parts, t("summary.nobody_moved"))
	end
	table.insert(parts, t("summary.new", { new = one.new, said = one.said }))
	return table.concat(parts, " ")
end

--- Returns how an option is carried. Those who stand elsewhere are counted, and their confidence in something else is not.
function agreement.carried(one: Measure, option: string): session.Carried
	local sum, count = 0, 0
	for _, position in one.positions do
		if position.option == option then
			sum += position.confidence
			count += 1
		end
	end
	return {
		by = count,
		of = #one.positions,
		confidence = if count > 0 then math.round(sum / count) else 0,
		percent = one.support[option] or 0,
	}
end

return agreement
