--!strict
--- Makes a model's text one line that reads well. A schema's limit cuts a text anywhere, in the middle of a word, too: such
--- a text is ended at its last whole sentence or word.

local text = require("@nietz/text")

local model_text = {}

--- Returns a model's text as one clean line. Where it is `limit` letters long or longer, the limit of its schema
--- may have cut it in the middle: it ends with its last whole sentence, or else with its last whole word and `…`.
function model_text.to_line(value: unknown, limit: number?): string
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

--- How far before the limit of its schema a constrained model may stop, in letters: one word.
local LONGEST_WORD = 12

--- A word that begins in Latin letters and ends in Chinese ones: models slip into them, because they take less room, when
--- little room is left.
local SLIPPED = "^(.-)%s%S*%a[\227-\233][\128-\191]"

--- The same for a constrained model, which stops shortly before the limit of its schema and not at it.
function model_text.to_whole_line(value: unknown, limit: number): string
	local line = model_text.to_line(value, limit)
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

return model_text
