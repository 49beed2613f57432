--!strict
--- Whether tests cover a change as its kind requires, by LCOV files and by what the runner prints.

local nietz = require("@nietz")
local options = require("./options")
local results = require("../common/memory/results")
local text = require("@nietz/text")

local coverage = {}

--- Returns the lines that a patch adds, by file.
function coverage.added_lines(patch: string): { [string]: { [number]: boolean } }
	local added: { [string]: { [number]: boolean } } = {}
	local file: string?, at: number = nil, 0
	for _, line in text.lines(patch) do
		local path = string.match(line, "^%+%+%+ b/(.+)$")
		local start = string.match(line, "^@@ %-[%d,]+ %+(%d+)")
		if path ~= nil then
			file = path
			added[path] = {}
		elseif start ~= nil then
			at = (tonumber(start) :: number) - 1
		elseif file ~= nil and string.find(line, "^[%+ ]") ~= nil and string.find(line, "^%+%+%+ ") == nil then
			at += 1
			if string.sub(line, 1, 1) == "+" then
				added[file :: string][at] = true
			end
		end
	end
	return added
end

--- Returns how many of these lines an LCOV file knows, and how many of them were executed.
function coverage.count_covered(content: string, lines: { [string]: { [number]: boolean } }): (number, number)
	local known, hit = 0, 0
	local file: { [number]: boolean }? = nil
	for _, row in text.lines(content) do
		local path = string.match(row, "^SF:(.+)$")
		if path ~= nil then
			file = nil
			for name, set in lines do
				if path == name or string.sub(path, -#name - 1) == "/" .. name then
					file = set
				end
			end
		end
		local line, count = string.match(row, "^DA:(%d+),(%d+)")
		if line ~= nil and file ~= nil and (file :: any)[tonumber(line)] then
			known += 1
			hit += if count ~= "0" then 1 else 0
		end
	end
	return known, hit
end

--- Returns why a change is not covered as required, or nil; and what could not be found out.
function coverage.judge(
	params: nietz.Values,
	before: results.Results,
	after: results.Results,
	patch: string,
	lcov: string?
): (string?, string?)
	local kind = params.kind
	local goal = params.coverage or options.COVERAGE[kind]
	if kind == "refactor" and params.coverage == nil then
		if before.coverage_percent == nil or after.coverage_percent == nil then
			return nil, "the runner tells no coverage, so it cannot be compared"
		elseif after.coverage_percent < before.coverage_percent - 1 then
			return `coverage fell from {before.coverage_percent} to {after.coverage_percent} %`, nil
		end
		return nil, nil
	end
	if kind == "bug_fix" then
		if after.total <= before.total and before.ran and before.verdict ~= "failed" then
			return "no test was added that shows the fix", nil
		elseif lcov == nil then
			return nil, "which lines of the fix are covered is not known; --lcov FILE tells"
		end
		local known, hit = coverage.count_covered(lcov, coverage.added_lines(patch))
		local percent = if known == 0 then 100 else 100 * hit / known
		if percent < goal then
			return `{hit} of {known} changed lines are covered, and {goal} % are asked for`, nil
		end
		return nil, nil
	end
	if after.coverage_percent == nil then
		return nil, `the runner tells no coverage; {goal} % are asked for`
	elseif after.coverage_percent < goal then
		return `coverage is {after.coverage_percent} %, and {goal} % are asked for`, nil
	end
	return nil, nil
end

return coverage
