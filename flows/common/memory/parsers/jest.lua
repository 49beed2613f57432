--!strict
--- Reads the output of jest, with or without `--verbose`.

local report = require("./report")
local text = require("@nietz/text")

return function(output: string): report.Report?
	local counts = string.match(output, "\nTests:%s+([^\n]+)")
	if counts == nil then
		return nil
	end
	local self = report.new("jest", "node")
	self.failed = report.number_before(counts, "failed")
	self.passed = report.number_before(counts, "passed")
	self.skipped = report.number_before(counts, "skipped") + report.number_before(counts, "todo")
	self.total = report.number_before(counts, "total")
	self.duration_ms = report.to_milliseconds(string.match(output, "\nTime:%s+([%d%.]+) ?s"))
	self.coverage_percent = tonumber(string.match(output, "\nAll files%s*|%s*([%d%.]+)"))
	local lines = text.lines(output)
	local file: string? = nil
	local seen: { [string]: boolean } = {}
	for at, line in lines do
		local named = string.match(line, "^FAIL%s+(%S+)") or string.match(line, "^PASS%s+(%S+)")
		file = if named then (string.gsub(named, "^%./", "")) else file
		local passed = string.match(line, "^%s+✓ (.-)%s*%(?[%d%.]* ?m?s?%)?$")
		if passed ~= nil then
			table.insert(self.passes, passed)
		end
		local name = string.match(line, "^%s+● (.+)$")
		-- A long run repeats its failures at the end.
		if name ~= nil and not seen[`{file} {name}`] and string.find(name, "^Console") == nil then
			seen[`{file} {name}`] = true
			local block = text.trim((report.read_block(lines, at + 1, function(row)
				return string.find(row, "^%s+● ") ~= nil
					or string.find(row, "^Test Suites:") ~= nil
					or string.find(row, "^%u+%s+%S+%.[jt]sx?") ~= nil
			end)))
			local place: report.Location?, source: report.Location? = nil, nil
			for where, number in string.gmatch(block, "at [^\n]-%(?([^%s%(%)]+):(%d+):%d+%)?") do
				if string.find(where, "node_modules", 1, true) == nil and string.find(where, "^node:") == nil then
					local here = { file = where, line = tonumber(number) }
					if file ~= nil and (where == file or string.sub(where, -#file - 1) == `/{file}`) then
						place = place or here
					else
						source = source or here
					end
				end
			end
			local suite = name == "Test suite failed to run"
			if suite then
				self.errors += 1
				self.failed += 1
				self.total += 1
			end
			report.add_failure(self, {
				test_name = name,
				test_file = file,
				test_line = if place then place.line else nil,
				error_message = string.match(block, "^(.-)\n%s*\n?%s*>?%s*%d+ |") or block,
				stack_trace = block,
				expected = string.match(block, "\n%s*Expected[^:\n]*: ([^\n]+)"),
				actual = string.match(block, "\n%s*Received[^:\n]*: ([^\n]+)"),
				source_location = source,
			})
		end
	end
	return self
end
