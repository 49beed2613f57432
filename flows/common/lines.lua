--!strict
--- What a model wrote, as one line that reads well: a limit on a text cuts it where it is, in the middle of a word too.

local text = require("@nietz/text")

local lines = {}

--- Returns a model's text as one clean line. Where it is `limit` letters long or longer, the limit of its schema
--- may have cut it in the middle: it ends with its last whole sentence, or else with its last whole word and `…`.
function lines.clean(value: unknown, limit: number?): string
	if type(value) ~= "string" then
		return ""
	end
	local plain = text.trim((string.gsub(value, "%s+", " ")))
	local most = limit or 300
	if (utf8.len(plain) or #plain) < most or string.find(plain, "[%.%?!]$") ~= nil and utf8.len(plain) == most then
		return plain
	end
	local kept = text.truncate(plain .. " ", most)
	local sentence = string.match(kept, "^(.*[%.%?!]) ")
	if sentence ~= nil and #sentence * 2 > #kept then
		return sentence
	end
	return (string.match(kept, "^(.*%S) %S*$") or string.gsub(kept, "…$", "")) .. "…"
end

--- A constrained model stops up to a word before the limit of its schema.
local LONGEST_WORD = 12

--- A word that begins in Latin letters and ends in Chinese ones, which take less room: models slip into them when
--- little is left.
local SLIPPED = "^(.-)%s%S*%a[\227-\233][\128-\191]"

--- Returns a model's text as one clean line that ends whole, where it stopped close before the limit of its schema.
function lines.whole(value: unknown, limit: number): string
	local line = lines.clean(value, limit)
	local kept = string.match(line, SLIPPED)
	if kept ~= nil then
		return string.match(kept, "^(.*[%.%?!]) ") or kept .. "…"
	end
	if (utf8.len(line) or #line) < limit - LONGEST_WORD or string.match(line, "[%.%?!]$") ~= nil then
		return line
	end
	local sentence = string.match(line, "^(.*[%.%?!]) ")
	if sentence ~= nil and #sentence * 2 > #line then
		return sentence
	end
	return string.match(line, "^(.-[^,]), [^,]*$") or (string.gsub(line, "%s%S*$", "…"))
end

return lines
