--!strict
--- The texts of commits: a short first line, and a body in lines that are not too wide.

local text = require("@nietz/text")

local commit_text = {}

--- The longest first line and the widest other line of a message, in letters.
local WIDEST_SUBJECT, WIDEST = 72, 72
--- How much of a text is kept, in bytes.
local MOST = 4000

--- Returns the first line of a text as the first line of a commit.
function commit_text.subject(said: string): string
	return text.truncate(string.gsub(text.lines(text.trim(said))[1] or "", "%s+", " "), WIDEST_SUBJECT)
end

--- Returns a text in lines that are not too wide, broken between words.
function commit_text.wrapped(said: string): string
	local lines: { string } = {}
	for _, line in text.lines(text.trim(text.truncate(said, MOST))) do
		local current = ""
		for word in string.gmatch(line, "%S+") do
			if current ~= "" and text.width(current) + 1 + text.width(word) > WIDEST then
				table.insert(lines, current)
				current = word
			else
				current = if current == "" then word else `{current} {word}`
			end
		end
		table.insert(lines, current)
	end
	return table.concat(lines, "\n")
end

--- Returns a text as a message: what its first line cannot hold stands whole below.
function commit_text.message(said: string): string
	local subject, body = commit_text.subject(said), commit_text.wrapped(said)
	return if subject == body then subject else `{subject}\n\n{body}`
end

return commit_text
