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

--- Returns the head of a comparison of Rust's that does not look at both sides, or nil.
local function one_sided(added: string): string?
	for head, other, body in string.gmatch(added, "(fn%s+eq%s*%(%s*&self%s*,%s*([%w_]+)[^)]*%)%s*%->%s*bool)%s*(%b{})") do
		local block = if body ~= nil then body else ""
		local own = string.find(block, "%f[%w_]self%f[^%w_]") ~= nil
		if not own or string.find(block, `%f[%w_]{other}%f[^%w_]`) == nil then
			return head
		end
	end
	return nil
end

--- Returns what of a file of tests code names in a text of its own, or nil: it could read there what it is asked.
local function names_tests(part: Part, test_files: { string }): string?
	for _, line in part.added do
		local is_comment = string.find(line, "^%s*[#/%*]") ~= nil or string.find(line, "^%s*%-%-") ~= nil
		local quote = if is_comment then nil else string.find(line, "[\"'`]")
		local names: { string } = if quote ~= nil then test_files else {}
		for _, name in names do
			if string.find(line, name, quote, true) ~= nil then
				return text.trim(line)
			end
		end
	end
	return nil
end

--- Returns what of the rules the text that was added to a file matches, or nil.
local function found_in(path: string, part: Part, added: string, is_test: boolean, test_files: { string }): string?
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
	if is_test then
		return nil
	end
	return blind_comparison(part)
		or (if string.find(path, "%.rs$") ~= nil then one_sided(added) else nil)
		or (if rules.is_code(path) then names_tests(part, test_files) else nil)
end

--- Returns what the added text does, each as a part of a sentence. What was put back is left out; `test_files` are names of files
--- of tests.
function reaches.find(
	parts: { [string]: Part },
	restored: { [string]: boolean },
	is_test: (path: string) -> boolean,
	test_files: { string }
): { string }
	local said: { string } = {}
	local ends, forges = nil :: string?, nil :: string?
	for path, part in parts do
		local added = table.concat(part.added, "\n")
		if restored[path] or added == "" or globs.matches(RULES.prose, path) then
			continue
		end
		local found = found_in(path, part, added, is_test(path), test_files)
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
