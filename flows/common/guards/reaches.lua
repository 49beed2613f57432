--!strict
--- What added text does to what tests run with: it gives an assertion, a runner or a comparison another meaning, or forges what a
--- runner writes.

local globs = require("./globs")
local rules = require("./rules")
local text = require("@nietz/text")

local reaches = {}

--- What a change adds to a file, and whether it takes anything away. `now` are the lines that a patch shows of the file as it is;
--- between them are gaps.
export type Part = { added: { string }, removes: boolean, now: { { text: string, added: boolean, gap: boolean? } } }

local RULES = rules.all

--- Returns the head of a comparison that does not look at what it compares with, where something of it was added; or nil.
local function blind_comparison(part: Part): string?
	for index, line in part.now do
		local indent, other, body = string.match(line.text, "^(%s*)def%s+__eq__%(%s*[%w_]+%s*,%s*([%w_]+)[^)]*%)[^:]*:(.*)$")
		if indent == nil or other == nil or body == nil then
			continue
		end
		local added = line.added
		for at = index + 1, #part.now do
			local row = part.now[at]
			local lead = string.match(row.text, "^(%s*)%S")
			if row.gap or (lead ~= nil and #lead <= #indent) then
				break
			end
			added = added or row.added
			body ..= "\n" .. row.text
		end
		local looks = string.find(body, `%f[%w_]{other}%f[^%w_]`) ~= nil or string.find(body, "raise", 1, true) ~= nil
		if added and not looks and string.find(body, "return", 1, true) ~= nil then
			return text.trim(line.text)
		end
	end
	return nil
end

--- Returns what of the rules the text that was added to a file matches, or nil.
local function found_in(path: string, part: Part, added: string, is_test: boolean): string?
	for _, reach in RULES.reaches do
		local applies = globs.matches(reach.files, path) and not (if is_test then reach.but_tests else reach.only_tests)
		if not applies or (reach.but_files ~= nil and globs.matches(reach.but_files, path)) then
			continue
		end
		for _, pattern in reach.patterns do
			local found = text.search(added, pattern)
			if found ~= nil then
				return (string.gsub(text.trim(found.text), "%s+", " "))
			end
		end
	end
	return if is_test then nil else blind_comparison(part)
end

--- Returns what the added text does, each as a part of a sentence. What was put back is left out.
function reaches.find(parts: { [string]: Part }, restored: { [string]: boolean }, is_test: (path: string) -> boolean): { string }
	local said: { string } = {}
	local ends, forges = nil :: string?, nil :: string?
	for path, part in parts do
		local added = table.concat(part.added, "\n")
		if restored[path] or added == "" or globs.matches(RULES.prose, path) then
			continue
		end
		local found = found_in(path, part, added, is_test(path))
		if found ~= nil then
			table.insert(said, `{path} changes what tests run with: \`{text.truncate(found, 100)}\``)
		end
		ends = ends or (if text.search(added, RULES.exits) ~= nil then path else nil)
		forges = forges or (if text.search(added, RULES.forged) ~= nil then path else nil)
	end
	if ends ~= nil and forges ~= nil then
		table.insert(said, `{forges} writes what a runner would write, and {ends} ends the process early`)
	end
	table.sort(said)
	return said
end

return reaches
