--!strict
--- Which creative technique fits now. The techniques themselves are data (`techniques/*.yaml`); here are the rules
--- by which one is chosen. Chance comes in as a function, so that the rules can be tested.

local data_files = require("../common/data_files")
local list = require("../common/list")
local session = require("./session")
local translations = require("../common/translations")
local yaml = require("@nietz/yaml")

local techniques = {}

export type Technique = {
	slug: string,
	category: string,
	phase: string,
	axes: { string },
	difficulty: string,
	name: { [string]: string },
	--- What to do one after the other, where it has steps.
	steps: { { [string]: string } }?,
	--- What to do; the same in other languages stands beside it, under their codes.
	en: string,
}
--- Chooses one item.
export type Pick = (items: { any }) -> any
export type Situation = {
	ems: number,
	phase: string,
	iteration: number,
	--- Weakest first, as `ems.weak_axes` returns them.
	weak: { string },
	--- `techniques_history` of the session.
	history: { session.UsedTechnique },
}

techniques.ALL = data_files.ordered(yaml.load_all("./techniques", { schema = "./technique.schema.json" })) :: { Technique }

--- The most techniques in one session.
techniques.MAX_USED = 5

local BY_AXIS: { [string]: { string } } = {
	clarity = { "deep", "structured" },
	depth = { "deep", "introspective" },
	coverage = { "creative", "collaborative", "wild" },
	decisions = { "structured", "deep", "prioritization" },
	action = { "structured", "prioritization" },
}

--- Pairs of techniques for two weak axes.
local MIXES: { { axes: { string }, slugs: { string } } } = {
	{ axes = { "clarity", "coverage" }, slugs = { "question-storming", "six-hats" } },
	{ axes = { "depth", "decisions" }, slugs = { "5whys", "moscow" } },
	{ axes = { "coverage", "action" }, slugs = { "what-if", "premortem" } },
	{ axes = { "clarity", "depth" }, slugs = { "first-principles", "5whys" } },
	{ axes = { "decisions", "action" }, slugs = { "scoring", "constraint-mapping" } },
}

local PROGRESSIVE: { { upto: number, categories: { string } } } = {
	{ upto = 30, categories = { "creative", "wild", "collaborative" } },
	{ upto = 50, categories = { "deep", "theatrical", "introspective" } },
	{ upto = 75, categories = { "structured", "deep" } },
	{ upto = 100, categories = { "structured" } },
}

--- Above this EMS none is used: it would only delay the end.
local TOO_LATE = 80
--- Below this EMS no hard one is used: it would only discourage.
local TOO_EARLY = 30

--- Returns the technique with this slug, or nil.
function techniques.find(slug: string): Technique?
	return list.find(techniques.ALL, function(technique): boolean
		return technique.slug == slug
	end)
end

--- Returns what a technique is called and what to do, in this language, or in English where it has none.
function techniques.in_language(technique: Technique, code: string): translations.Vars
	return { name = translations.pick(technique.name, code), text = translations.pick(technique :: any, code) }
end

--- Returns all slugs, for completion and for guessing.
function techniques.slugs(): { string }
	return list.map(techniques.ALL, function(technique): string
		return technique.slug
	end)
end

--- Returns all categories, in the order of the file.
function techniques.categories(): { string }
	local found: { string } = {}
	for _, technique in techniques.ALL do
		if table.find(found, technique.category) == nil then
			table.insert(found, technique.category)
		end
	end
	return found
end

--- Whether the rules allow this technique now: not one of the last two iterations, not the category of the last one, not
--- hard at the beginning, none near the end.
function techniques.is_allowed(technique: Technique, situation: Situation): boolean
	if situation.ems > TOO_LATE or (technique.difficulty == "hard" and situation.ems < TOO_EARLY) then
		return false
	end
	local last = situation.history[#situation.history]
	if last ~= nil and last.category == technique.category then
		return false
	end
	for _, entry in situation.history do
		if entry.technique_slug == technique.slug and entry.iteration > situation.iteration - 2 then
			return false
		end
	end
	return true
end

local function candidates(situation: Situation, categories: { string }, axis: string?): { Technique }
	local found: { Technique } = {}
	for _, technique in techniques.ALL do
		local fits = table.find(categories, technique.category) ~= nil
			and (axis == nil or table.find(technique.axes, axis) ~= nil)
			-- A technique for choosing would force decisions too early.
			and not (situation.phase == "divergent" and technique.phase == "convergent")
		if fits and techniques.is_allowed(technique, situation) then
			table.insert(found, technique)
		end
	end
	return found
end

--- Returns the allowed pair for two weak axes, one that helps the weakest if there is one.
local function pair_for_weak_axes(situation: Situation): { Technique }
	local found: { Technique } = {}
	for _, candidate in MIXES do
		local first, second = techniques.find(candidate.slugs[1]), techniques.find(candidate.slugs[2])
		if
			table.find(situation.weak, candidate.axes[1]) ~= nil
			and table.find(situation.weak, candidate.axes[2]) ~= nil
			and first ~= nil
			and second ~= nil
			and techniques.is_allowed(first, situation)
			and techniques.is_allowed(second, situation)
		then
			if table.find(candidate.axes, situation.weak[1]) ~= nil then
				return { first, second }
			end
			found = if #found == 0 then { first, second } else found
		end
	end
	return found
end

--- Returns one technique for this axis, of another category than `other`, or nil.
local function for_axis(situation: Situation, axis: string, pick: Pick, other: Technique?): Technique?
	local found: { Technique } = {}
	for _, technique in candidates(situation, BY_AXIS[axis] or {}, axis) do
		if other == nil or other.category ~= technique.category then
			table.insert(found, technique)
		end
	end
	return if #found > 0 then pick(found) else nil
end

--- Returns what helps the weak axes: two techniques where two axes are weak (their known pair, or one for each), one where
--- one is, or none.
function techniques.suggest(situation: Situation, pick: Pick): { Technique }
	local found = pair_for_weak_axes(situation)
	for _, axis in situation.weak do
		if #found < 2 then
			local technique = for_axis(situation, axis, pick, found[1])
			if technique ~= nil then
				table.insert(found, technique)
			end
		end
	end
	return found
end

--- Returns a technique by chance, of the categories that came up least, and the new state.
function techniques.pick_random(situation: Situation, state: session.Chances, pick: Pick): (Technique?, session.Chances)
	local counts: { [string]: number } = table.clone(state.category_counts or {})
	local fewest = math.huge
	local open: { [string]: { Technique } } = {}
	for _, category in techniques.categories() do
		local found = candidates(situation, { category })
		if #found > 0 and category ~= state.last_category then
			open[category] = found
			fewest = math.min(fewest, counts[category] or 0)
		end
	end
	local least: { string } = {}
	for _, category in techniques.categories() do
		if open[category] ~= nil and (counts[category] or 0) == fewest then
			table.insert(least, category)
		end
	end
	if #least == 0 then
		return nil, state
	end
	local category = pick(least)
	counts[category] = (counts[category] or 0) + 1
	return pick(open[category]), { last_category = category, category_counts = counts }
end

--- Returns the technique that belongs to how far the session is.
function techniques.pick_progressive(situation: Situation, pick: Pick): Technique?
	for _, band in PROGRESSIVE do
		if situation.ems <= band.upto then
			local found = candidates(situation, band.categories)
			return if #found > 0 then pick(found) else nil
		end
	end
	return nil
end

return techniques
