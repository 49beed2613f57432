--!strict
--- How mature an idea is, from 0 to 100 (EMS). A model gives a score and its evidence for each axis; what they are worth is
--- arithmetic. Apart and pure, so that it can be tested.

local similarity = require("../common/similarity")
local text = require("@nietz/text")

local ems = {}

export type Axes = { [string]: number }
export type Claim = { score: number, evidence: string }
export type Axis = {
	key: string,
	weight: number,
	--- The name in session files, as the specification's examples spell it.
	file: string,
}

ems.AXES = {
	{ key = "clarity", weight = 0.25, file = "Clarte" },
	{ key = "depth", weight = 0.20, file = "Profondeur" },
	{ key = "coverage", weight = 0.20, file = "Couverture" },
	{ key = "decisions", weight = 0.20, file = "Decisions" },
	{ key = "action", weight = 0.15, file = "Actionnabilite" },
} :: { Axis }

--- An axis below this is weak.
ems.WEAK = 50
--- Where the session turns from opening up to choosing.
ems.TRANSITION = 50
--- Where the user must be asked whether to finish.
ems.CHECKPOINT = 70
--- Where finishing is the advice.
ems.READY = 85

--- How far an axis may rise in one iteration, by its evidence: words of the user, few of them, words that served another axis
--- already, other words, or nothing said.
local RISE = { strong = 25, thin = 15, reused = 10, unrelated = 5, nothing_said = 0 }
--- Evidence of fewer meaningful words is thin.
local THIN = 4
--- How far an axis may fall at once: a model that forgot something must not undo the user's work.
local FALL = 10

--- Returns the axes of a session where only a topic is known.
function ems.initial_axes(): Axes
	return { clarity = 30, depth = 15, coverage = 20, decisions = 20, action = 20 }
end

--- Returns axes that combine to this EMS, for files that keep no axes.
function ems.even_axes(value: number): Axes
	local axes: Axes = {}
	for _, axis in ems.AXES do
		axes[axis.key] = value
	end
	return axes
end

--- Returns the EMS of these axes, a whole number.
function ems.combine(axes: Axes): number
	local sum = 0
	for _, axis in ems.AXES do
		sum += axis.weight * math.clamp(axes[axis.key] or 0, 0, 100)
	end
	-- 0.25 and 0.15 are not exact in binary: without the small addition, x.5 would round either way.
	return math.floor(sum + 0.5 + 1e-9)
end

--- Returns the level's key for `lang/*.yaml`.
function ems.level(value: number): string
	if value <= 30 then
		return "germination"
	elseif value <= 50 then
		return "development"
	elseif value <= 70 then
		return "mature"
	elseif value <= 85 then
		return "complete"
	end
	return "exceptional"
end

--- Returns the weak axes, weakest first. While the session is divergent, open decisions are no weakness.
function ems.weak_axes(axes: Axes, phase: string?): { string }
	local weak: { string } = {}
	for _, axis in ems.AXES do
		if (axes[axis.key] or 0) < ems.WEAK and not (phase == "divergent" and axis.key == "decisions") then
			table.insert(weak, axis.key)
		end
	end
	-- Equal axes keep the order of `AXES`, so that the same session gets the same advice.
	local order: { [string]: number } = {}
	for index, axis in ems.AXES do
		order[axis.key] = (axes[axis.key] or 0) * 10 + index
	end
	table.sort(weak, function(a: string, b: string): boolean
		return order[a] < order[b]
	end)
	return weak
end

--- Returns what to do next: `finish`, `suggest_finish`, `technique`, `converge` or `continue`.
function ems.advice(value: number, weak: { string }): string
	if value >= ems.READY then
		return "finish"
	elseif value >= ems.CHECKPOINT then
		return "suggest_finish"
	elseif #weak > 0 then
		return "technique"
	elseif value >= ems.TRANSITION then
		return "converge"
	end
	return "continue"
end

--- Returns the name of an axis in session files.
function ems.file_name(key: string): string
	for _, axis in ems.AXES do
		if axis.key == key then
			return axis.file
		end
	end
	return key
end

local function allowed_rise(evidence: string, said: string, used: { string }): number
	if #similarity.words(said) == 0 then
		return RISE.nothing_said
	end
	local needed = math.min(2, #similarity.words(said))
	if similarity.shared_words(evidence, said) < needed then
		return RISE.unrelated
	end
	if similarity.repeats(evidence, used) then
		return RISE.reused
	end
	return if #similarity.words(evidence) < THIN then RISE.thin else RISE.strong
end

--- Returns the axes after an iteration, and which of them were held back: for want of `evidence`, or because no axis rises
--- further at once (`pace`).
---
--- `said` is what the user said in this iteration. How far an axis may rise depends on its evidence (`RISE`). An axis without
--- a claim stays.
function ems.limit_change(before: Axes, claims: { [string]: Claim }, said: string): (Axes, { [string]: string })
	local after: Axes = {}
	local held: { [string]: string } = {}
	local used: { string } = {}
	for _, axis in ems.AXES do
		local from = before[axis.key] or 0
		local claim = claims[axis.key]
		if claim == nil then
			after[axis.key] = from
			continue
		end
		local rise = allowed_rise(claim.evidence, said, used)
		local claimed = math.clamp(claim.score, 0, 100)
		after[axis.key] = math.clamp(claimed, math.max(0, from - FALL), math.min(100, from + rise))
		if claimed > after[axis.key] then
			held[axis.key] = if rise == RISE.strong then "pace" else "evidence"
		end
		table.insert(used, claim.evidence)
	end
	return after, held
end

--- Returns a number with its sign: `+3`, `-2`, `±0`.
function ems.with_sign(delta: number): string
	if delta > 0 then
		return `+{delta}`
	end
	return if delta == 0 then "±0" else tostring(delta)
end

--- Returns the bars as lines of text, `labels` being the axes' names in the user's language.
function ems.chart(axes: Axes, before: Axes?, labels: { [string]: string }): string
	local widest = 0
	for _, axis in ems.AXES do
		widest = math.max(widest, text.width(labels[axis.key]))
	end
	local lines: { string } = {}
	for _, axis in ems.AXES do
		local value = axes[axis.key] or 0
		local filled = math.floor(value / 10 + 0.5)
		local bar = string.rep("█", filled) .. string.rep("░", 10 - filled)
		local label = labels[axis.key] .. string.rep(" ", widest - text.width(labels[axis.key]))
		local line = `{label}  {bar} {string.format("%3d", value)}`
		if before ~= nil and value ~= (before[axis.key] or 0) then
			line ..= `  {ems.with_sign(value - (before[axis.key] or 0))}`
		end
		if value < ems.WEAK then
			line ..= " ·"
		end
		table.insert(lines, line)
	end
	return table.concat(lines, "\n")
end

--- Returns the EMS of each iteration as one small line: `▁▃▅▆`.
function ems.sparkline(values: { number }): string
	local steps = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" }
	local line = ""
	for _, value in values do
		line ..= steps[math.clamp(math.floor(value / 12.5) + 1, 1, 8)]
	end
	return line
end

return ems
