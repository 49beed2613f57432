--!strict
--- Failures that a session leaves as they are: those that the user named with `--wont-fix`, and those that are flagged for a
--- person while the session goes on with the others.

local list = require("../common/list")
local report = require("../common/memory/parsers/report")
local results = require("../common/memory/results")
local state = require("./state")
local ui = require("@nietz/ui")

local set_aside = {}

--- Whether a name that a person gives means a test: its whole name, or its last part, as runners write it.
function set_aside.means(given: string, name: string): boolean
	local plain = string.gsub(name, "%)$", "")
	local without_place = string.match(name, "^(.-) %(")
	if given == name or given == without_place then
		return true
	end
	local before = string.sub(plain, -#given - 1, -#given - 1)
	return #given > 0 and string.sub(plain, -#given) == given and string.find(before, "^[%w_]") == nil
end

local function find(self: state.Session, name: string): state.SetAside?
	for _, entry in self.set_aside do
		if set_aside.means(entry.test, name) then
			return entry
		end
	end
	return nil
end

--- Takes out of results what is left as it is. What passes or fails then is what the session is for.
function set_aside.apply(self: state.Session, latest: results.Results)
	local open: { report.Failure } = {}
	for _, failure in latest.failures do
		if find(self, failure.test_name) == nil then
			table.insert(open, failure)
		end
	end
	local taken = #latest.failures - #open
	if taken == 0 then
		return
	end
	latest.failures = open
	latest.failed = math.max(#open, latest.failed - taken)
	if #open == 0 and latest.failed == 0 then
		latest.verdict = if latest.skipped > 0 then "unverified" else "passed"
	end
end

--- Says which names that the user gave mean no test that fails: such a name is misspelt, or the test is mended by now.
function set_aside.say_unknown(self: state.Session, failures: { report.Failure })
	for _, entry in self.set_aside do
		local fails = list.some(failures, function(failure)
			return set_aside.means(entry.test, failure.test_name)
		end)
		if not fails then
			ui.say(`--wont-fix {entry.test}: no test of that name fails.`)
		end
	end
end

--- Flags failures for a person.
function set_aside.flag(self: state.Session, names: { string }, why: string)
	for _, name in names do
		table.insert(self.set_aside, { test = name, resolution = "escalated", note = why })
	end
end

--- Returns the entry of a test that is left as it is, or nil.
set_aside.find = find

--- Returns how many failures are left to a person.
function set_aside.flagged(self: state.Session): { string }
	local names = {}
	for _, entry in self.set_aside do
		if entry.resolution == "escalated" then
			table.insert(names, entry.test)
		end
	end
	return names
end

return set_aside
