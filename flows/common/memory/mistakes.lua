--!strict
--- Which kinds of mistakes a failure shows, and which ones somebody told as its cause: `mistakes.yaml` has the signs.

local yaml = require("@nietz/yaml")

local mistakes = {}

type Kind = { strong: { string }?, weak: { string }?, values: { string }?, told: { string } }

local KINDS = yaml.load("./mistakes.yaml") :: { [string]: Kind }

local NAMES: { string } = {}
for name in KINDS do
	table.insert(NAMES, name)
end
table.sort(NAMES)

--- By the name of a kind: how sure it is, from 0 to 1.
export type Signs = { [string]: number }

--- How sure a sign is.
local STRONG, WEAK = 1, 0.35

--- By pattern: whether it is a text that stands for itself, which is found much faster.
local PLAIN: { [string]: boolean } = {}

local function has_any(text: string, patterns: { string }?): boolean
	for _, pattern in patterns or {} :: { string } do
		local plain = PLAIN[pattern]
		if plain == nil then
			plain = string.find(pattern, "[%^%$%(%)%%%.%[%]%*%+%-%?]") == nil
			PLAIN[pattern] = plain
		end
		if string.find(text, pattern, 1, plain) ~= nil then
			return true
		end
	end
	return false
end

--- Returns the kinds of mistakes that a failure shows: by its texts, and by the way in which values differ, which is as sure as
--- `certainty`.
function mistakes.shown(texts: string, symptom: string?, certainty: number): Signs
	local low, found = string.lower(texts), {} :: Signs
	for _, name in NAMES do
		local kind = KINDS[name]
		local sure = if has_any(low, kind.strong) then STRONG elseif has_any(low, kind.weak) then WEAK else 0
		if symptom ~= nil and table.find(kind.values or {} :: { string }, symptom) ~= nil then
			sure = math.max(sure, certainty)
		end
		if sure > 0 then
			found[name] = sure
		end
	end
	return found
end

--- Returns the kinds of mistakes that a cause and a fix tell.
function mistakes.told(texts: string): Signs
	local low, found = string.lower(texts), {} :: Signs
	for _, name in NAMES do
		if has_any(low, KINDS[name].told) then
			found[name] = STRONG
		end
	end
	return found
end

--- Returns how sure it is that a failure shows a mistake that was told of another one; `weight` is what a kind is worth as a
--- sign.
function mistakes.shared(shown: Signs, told: Signs, weight: (name: string) -> number): number
	local best = 0
	for name, sure in shown do
		if told[name] ~= nil then
			best = math.max(best, sure * weight(name))
		end
	end
	return best
end

--- Whether a failure shows a mistake for sure, and none of its kinds was told of another one.
function mistakes.differ(shown: Signs, told: Signs): boolean
	local sure = false
	for name, how in shown do
		if told[name] ~= nil then
			return false
		end
		sure = sure or how == STRONG
	end
	return sure and next(told) ~= nil
end

return mistakes
