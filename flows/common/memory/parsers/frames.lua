--!strict
--- Finds the places in stack traces, as runtimes write them: innermost first. Which of them is in the project is not known
--- here; `../places.lua` tells.

local report = require("./report")
local text = require("@nietz/text")

type Location = report.Location

local frames = {}

--- The most frames that are kept of one failure.
local MOST = 40

local function add(list: { Location }, file: string, line: string?, name: string?)
	local function_name = if name == nil or name == "" then nil else name
	local last = list[#list]
	if last ~= nil and last.file == file and last.line == tonumber(line) then
		last["function"] = last["function"] or function_name
	else
		table.insert(list, { file = file, line = tonumber(line), ["function"] = function_name })
	end
end

--- Returns a list with its last element first.
local function reversed(list: { Location }): { Location }
	local out: { Location } = {}
	for index = #list, 1, -1 do
		table.insert(out, list[index])
	end
	return out
end

--- Reads Python's own tracebacks and those of pytest. Of a chain of exceptions it is the last one that ended the test.
function frames.python(block: string): { Location }
	local outer: { Location } = {}
	local rows = text.lines(block)
	for at, row in rows do
		local file, line, name = string.match(row, '^%s*E?%s*File "([^"]+)", line (%d+),? ?i?n?%s?(.*)$')
		if file == nil and string.find(row, "^The above exception was") or string.find(row, "^During handling of the above") then
			outer = {}
		elseif file == nil and string.find(row, "^%s") == nil then
			local place, rest
			place, line, rest = string.match(row, "^(.-):(%d+): ?(.*)$")
			name = string.match(rest or "", "^in (.+)$")
			-- Behind the number stand `in NAME`, the name of an exception, or nothing; with --tb=line a message.
			local plain = rest == ""
				or name ~= nil
				or string.find(rest or "", "^[%a_][%w_%.]*$") ~= nil
				or string.find(rest or "", "^[%w_%.]+: ") ~= nil
			file = if place ~= nil and plain and string.find(place, "%.%w+$") ~= nil then place else nil
		end
		if file ~= nil and string.find(file, "^<") == nil then
			add(outer, file, line, if name == "<module>" or rows[at] == name then nil else name)
		end
	end
	return reversed(outer)
end

--- Reads the traces of V8, as node, jest and mocha write them, and those of vitest.
function frames.javascript(block: string): { Location }
	local list: { Location } = {}
	for _, row in text.lines(block) do
		local rest = string.match(row, "^%s*at (.+)$") or string.match(row, "^%s*❯ (.+)$") or string.match(row, "^%s*(%S.*%))$")
		if rest ~= nil then
			rest = string.gsub(rest, "^async ", "")
			local name, file, line = string.match(rest, "^(.-)%s*%(([^%(%)]+):(%d+):%d+%)$")
			if file == nil then
				name, file, line = string.match(rest, "^(.-)%s?([^%s%(%)]+):(%d+):%d+$")
			end
			if file ~= nil and string.find(file, "^node:") == nil and string.find(file, "[%./]") ~= nil then
				add(list, file, line, if name == "" then nil else name)
			end
		end
	end
	return list
end

--- Reads the traces of the JVM: `at com.acme.Cart.total(Cart.java:7)`. Their files are the ends of paths.
function frames.java(block: string): { Location }
	local list: { Location } = {}
	for _, row in text.lines(block) do
		if string.find(row, "^%s*Caused by: ") then
			break
		end
		local class, name, file, line = string.match(row, "^%s*at ([%w_%.%$/@%-]+)%.([^%.%(]+)%(([%w_%-]+%.%a+):(%d+)%)")
		if class ~= nil then
			-- In front of a class may stand its loader and its module.
			local package = string.match(string.match(class, "([^/]*)$") or "", "^(.*)%.") or ""
			local folder = if package == "" then "" else (string.gsub(package, "%.", "/")) .. "/"
			local place: Location = { file = folder .. (file :: string), line = tonumber(line), ["function"] = name, partial = true }
			table.insert(list, place)
		end
	end
	return list
end

--- Reads the traces of Ruby: `./lib/cart.rb:9:in 'first'`.
function frames.ruby(block: string): { Location }
	local list: { Location } = {}
	for _, row in text.lines(block) do
		local file, line, rest = string.match(row, "^%s*#?%s*([^%s:][^:]*%.rb):(%d+)(.*)$")
		if file ~= nil and (rest == "" or string.find(rest :: string, "^:in ")) then
			add(list, file, line, string.match(rest :: string, "^:in [`'](.-)'$"))
		end
	end
	return list
end

--- Reads the traces of PHPUnit: a path and a line each.
function frames.php(block: string): { Location }
	local list: { Location } = {}
	for _, row in text.lines(block) do
		local file, line = string.match(row, "^%s*(/.*%.php):(%d+)$")
		if file ~= nil then
			add(list, file, line)
		end
	end
	return list
end

--- Reads what a panic of Rust says, and its backtrace where there is one.
function frames.rust(block: string): { Location }
	local list: { Location } = {}
	local file, line = string.match(block, "panicked at ([^\n]-):(%d+):%d+:\n")
	if file == nil then
		-- The form of Rust up to 1.72.
		file, line = string.match(block, "panicked at '.-', ([^\n]-):(%d+):%d+")
	end
	if file ~= nil then
		add(list, file, line)
	end
	local name: string? = nil
	for _, row in text.lines(block) do
		name = string.match(row, "^%s*%d+: +(.+)$") or name
		local where, number = string.match(row, "^%s+at (.-):(%d+):%d+$")
		if where ~= nil then
			-- A backtrace begins in the runtime; what a panic says is where it leaves the project.
			add(list, (string.gsub(where, "^%./", "")), number, name)
		end
	end
	return list
end

--- Reads the first goroutine of a panic of Go: a function, and below it its place.
function frames.go(block: string): { Location }
	local list: { Location } = {}
	local name: string? = nil
	for _, row in text.lines(block) do
		local file, line = string.match(row, "^\t(.+%.go):(%d+)")
		if file ~= nil and string.find(file, "^%s") == nil then
			add(list, file, line, name)
		elseif string.find(row, "^created by ") then
			name = nil
		elseif string.find(row, "^%S.*%)$") then
			name = string.match(string.match(row, "([^/]+)$") or "", "^[^%.]+%.(.-)%([^%(]*%)$")
		elseif row == "" and #list > 0 then
			break
		end
	end
	return list
end

--- Reads the traces of .NET: `at Shop.Cart.First() in /src/Cart.cs:line 12`.
function frames.dotnet(block: string): { Location }
	local list: { Location } = {}
	for _, row in text.lines(block) do
		local name, file, line = string.match(row, "^%s*at (.-) in (.+):line (%d+)$")
		if file ~= nil then
			add(list, file, line, name)
		end
	end
	return list
end

--- Reads what Perl's tests say: `at t/cart.t line 5.`.
function frames.perl(block: string): { Location }
	local list: { Location } = {}
	for _, row in text.lines(block) do
		local file, line = string.match(row, "at (%S+%.%a+) line (%d+)%.?$")
		if file ~= nil then
			add(list, file, line)
		end
	end
	return list
end

--- Reads places alone, `list.c:12: expected 3`, as compilers and many small runners write them.
function frames.plain(block: string): { Location }
	local list: { Location } = {}
	for _, row in text.lines(block) do
		local file, line = string.match(row, "^%s*([%w_%./%-]+%.%a%w*):(%d+)")
		if file ~= nil then
			add(list, file, line)
		end
	end
	return list
end

--- Returns the frames of whichever runtime wrote a trace; none where nothing is known.
function frames.any(block: string): { Location }
	for _, read in
		{ frames.python, frames.java, frames.dotnet, frames.rust, frames.go, frames.ruby, frames.php, frames.perl, frames.javascript }
	do
		local list = read(block)
		if #list > 0 then
			return list
		end
	end
	return {}
end

--- Returns the first frames of a list, as many as are kept.
function frames.limited(list: { Location }): { Location }
	return if #list > MOST then table.move(list, 1, MOST, 1, {}) else list
end

return frames
