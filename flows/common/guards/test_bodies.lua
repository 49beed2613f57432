--!strict
--- What tests do, read from their source without running it: which there are in a file, and whether one still asserts anything.

local text = require("@nietz/text")

local test_bodies = {}

--- A test in a file: its attributes and body without white space, and how often it asserts something.
export type Body = { name: string, code: string, asserts: number }

--- What counts as an assertion: calls of assertions and of helpers that are called like one.
local ASSERTS =
	"%f[%w_]%a*[_%.]?[aA]ssert[%w_]*|%f[%w_]expect|%f[%w_]should|%f[%w_]check|%f[%w_]verify|%f[%w_]raise|panic!|%.Fatal|%.Error|%.Fail|unwrap"
local SIGNS: { string } = string.split(ASSERTS, "|")

local function count_asserts(code: string): number
	local count = 0
	for _, sign in SIGNS do
		local _, found = string.gsub(code, sign, "")
		count += found
	end
	return count
end

--- Returns the text from an opening brace to the one that closes it; braces in strings and comments are left out of account.
local function braced(source: string, from: number): string?
	local opens = string.find(source, "{", from, true)
	if opens == nil then
		return nil
	end
	local depth, at = 0, opens :: number
	while at <= #source do
		local letter = string.sub(source, at, at)
		if letter == '"' then
			local ends = at + 1
			while ends <= #source and string.sub(source, ends, ends) ~= '"' do
				ends += if string.sub(source, ends, ends) == "\\" then 2 else 1
			end
			at = ends
		elseif string.sub(source, at, at + 1) == "//" then
			at = string.find(source, "\n", at, true) or #source
		elseif letter == "{" then
			depth += 1
		elseif letter == "}" then
			depth -= 1
			if depth == 0 then
				return string.sub(source, opens :: number, at)
			end
		end
		at += 1
	end
	return string.sub(source, opens :: number)
end

local function add(all: { Body }, name: string, code: string)
	local plain = string.gsub(code, "//[^\n]*", "")
	table.insert(all, { name = name, code = (string.gsub(plain, "%s+", "")), asserts = count_asserts(plain) })
end

local function of_rust(source: string, all: { Body })
	local at = 1
	while true do
		local first, last = string.find(source, "#%[[^%]\n]*test[^%]\n]*%]", at)
		if first == nil then
			return
		end
		at = (last :: number) + 1
		-- Other attributes and words stand between the attribute and its function.
		local head, name = string.match(source, "^(%s*[^{};]-)%f[%w_]fn%s+([%w_]+)", at)
		if name ~= nil and string.find(string.sub(source, first, last), "cfg", 1, true) == nil then
			local body = braced(source, at + #(head :: string))
			if body ~= nil then
				add(all, name, string.sub(source, first, last) .. (head :: string) .. body)
				at += #(head :: string)
			end
		end
	end
end

local function of_python(source: string, all: { Body })
	local lines = text.lines(source)
	for index, line in lines do
		local indent, name = string.match(line, "^(%s*)def%s+(test[%w_]*)")
		if name == nil then
			indent, name = string.match(line, "^(%s*)async%s+def%s+(test[%w_]*)")
		end
		if indent == nil or name == nil then
			continue
		end
		local body: { string } = {}
		for at = index + 1, #lines do
			local lead = string.match(lines[at], "^(%s*)%S")
			if lead ~= nil and #lead <= #indent then
				break
			end
			table.insert(body, (string.gsub(lines[at], "^%s*#.*$", "")))
		end
		add(all, name, table.concat(body, "\n"))
	end
end

local function of_braces(source: string, pattern: string, all: { Body })
	local at = 1
	while true do
		local first, last, name = string.find(source, pattern, at)
		if first == nil then
			return
		end
		at = (last :: number) + 1
		local body = braced(source, at)
		if body ~= nil then
			add(all, name, body)
		end
	end
end

--- Returns the tests that a file has, by its ending; none where its language is not known.
function test_bodies.read(path: string, source: string): { Body }
	local all: { Body } = {}
	if string.find(path, "%.rs$") then
		of_rust(source, all)
	elseif string.find(path, "%.py$") then
		of_python(source, all)
	elseif string.find(path, "%.go$") then
		of_braces(source, "\nfunc%s+(Test[%w_]*)%s*%(", all)
	elseif string.find(path, "%.[cm]?[jt]sx?$") then
		for _, word in { "test", "it" } do
			of_braces(source, `%f[%w_]{word}%(%s*["'\`]([^"'\`\n]+)["'\`]`, all)
		end
	end
	return all
end

return test_bodies
