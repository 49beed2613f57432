--!strict
--- How far a debate is, in figures: who stands where, how much of the confidence is behind one option, who moved, and
--- how much was new. Pure. The end of a debate rests on these figures alone, and not on anybody's impression.

local json = require("@nietz/json")
local list = require("../common/list")
local similarity = require("../common/similarity")

local measure = {}

--- Where one persona stands after a cycle; `option` is `undecided` where it has not chosen.
export type Position = { name: string, option: string, confidence: number }
export type Measure = {
	cycle: number,
	--- By option: percent of all confidence.
	support: { [string]: number },
	--- The option with the most support; nil where two have the same, or nobody chose.
	leading: string?,
	positions: { Position },
	--- Who changed option, and how much confidences moved on average.
	moved: { { name: string, from: string, to: string } },
	drift: number,
	said: number,
	new: number,
}
export type Option = { id: string, text: string }

measure.UNDECIDED = "undecided"
--- Percent of all confidence behind one option from which a council is agreed.
measure.CONVERGED = 80
--- Percent of what was said in a cycle at or below which nothing new was said.
measure.NEW = 20
--- Average points of confidence below which nobody has moved.
measure.STILL = 10
--- Two texts that share more than this say the same.
measure.SAME = 0.6

--- Returns how many of these texts nobody has said before, in the same words or nearly.
function measure.new(texts: { string }, before: { string }): number
	local count = 0
	local seen: { similarity.Stems } = {}
	for _, text in before do
		table.insert(seen, similarity.stems(text))
	end
	for _, text in texts do
		local own = similarity.stems(text)
		local new = true
		for _, other in seen do
			new = new and similarity.of_stems(own, other) <= measure.SAME
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
		if position.option ~= measure.UNDECIDED then
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

local function of(positions: { Position }, name: string): Position?
	return list.find(positions, function(position): boolean
		return position.name == name
	end)
end

--- Returns the figures of a cycle. `before` are the positions of the cycle before it.
function measure.of(cycle: number, positions: { Position }, before: { Position }, texts: { string }, earlier: { string }): Measure
	local sums, leading = support(positions)
	local moved: { any } = json.array({})
	local shift, count = 0, 0
	for _, position in positions do
		local old = of(before, position.name)
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
		said = #texts,
		new = measure.new(texts, earlier),
	}
end

local function still(one: Measure): boolean
	return one.cycle > 1 and #one.moved == 0 and one.drift < measure.STILL
end

--- Returns why the debate is over after these cycles, or nil. The first cycle ends nothing but by the limit: nobody has
--- heard anybody yet.
function measure.outcome(history: { Measure }, limit: number): string?
	local last, before = history[#history], history[#history - 1]
	if last.cycle >= 2 then
		if last.leading ~= nil and last.support[last.leading] >= measure.CONVERGED then
			return "converged"
		elseif still(last) and before ~= nil and still(before) then
			return "deadlock"
		elseif #last.moved == 0 and last.new * 100 <= measure.NEW * last.said then
			return "nothing_new"
		end
	end
	return if last.cycle >= limit then "limit_reached" else nil
end

local function names(one: Measure, option: string): string
	local found: { string } = {}
	for _, position in one.positions do
		if position.option == option then
			table.insert(found, `{position.name} {position.confidence}`)
		end
	end
	return table.concat(found, ", ")
end

--- Says in a paragraph where the council stands and how it got there.
function measure.summary(one: Measure, options: { Option }): string
	local parts: { string } = {}
	for _, option in options do
		local who = names(one, option.id)
		if who ~= "" then
			table.insert(parts, `{option.id} "{option.text}" has {one.support[option.id]} % of the confidence ({who}).`)
		end
	end
	local open = names(one, measure.UNDECIDED)
	if open ~= "" then
		table.insert(parts, `Undecided: {open}.`)
	end
	for _, move in one.moved do
		table.insert(parts, `{move.name} moved from {move.from} to {move.to}.`)
	end
	if one.cycle > 1 and #one.moved == 0 then
		table.insert(parts, "Nobody changed sides.")
	end
	table.insert(parts, `{one.new} of {one.said} points were new.`)
	return table.concat(parts, " ")
end

--- Returns from 0 to 100 how confident the council as a whole is of an option: those against it and the undecided count 0.
function measure.confidence(one: Measure, option: string): number
	local sum = 0
	for _, position in one.positions do
		sum += if position.option == option then position.confidence else 0
	end
	return if #one.positions > 0 then math.round(sum / #one.positions) else 0
end

return measure
