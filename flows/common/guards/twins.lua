--!strict
--- Tests that the work adds under the name of one that was there: where the runner does not tell where a test stands, the new one
--- could be run in the place of the old one.

local counts = require("./counts")
local results = require("../memory/results")
local test_bodies = require("./test_bodies")

local twins = {}

--- How many more tests of a name there are than before, and a file that has one of them. `apart` says that all of them stand in
--- packages that the work adds, with a manifest of their own.
export type Twin = { name: string, more: number, path: string, apart: boolean }

local MANIFESTS = { "Cargo.toml", "package.json", "pyproject.toml", "go.mod" }

local function is_apart(path: string, manifests: { [string]: boolean }): boolean
	local folder = string.match(path, "^(.*)/[^/]*$")
	while folder ~= nil do
		for _, manifest in MANIFESTS do
			if manifests[`{folder}/{manifest}`] then
				return true
			end
		end
		folder = string.match(folder, "^(.*)/[^/]*$")
	end
	return false
end

--- Returns how often a file has tests of each name.
local function count(path: string, source: string?): { [string]: number }
	local counted: { [string]: number } = {}
	local bodies: { test_bodies.Body } = if source ~= nil then test_bodies.read(path, source) else {}
	for _, body in bodies do
		counted[body.name] = (counted[body.name] or 0) + 1
	end
	return counted
end

--- Returns the tests whose names the changed files have more often than before. `added` are the paths that are new.
function twins.find(before: { [string]: string }, after: { [string]: string }, added: { [string]: boolean }): { Twin }
	local by_name: { [string]: Twin } = {}
	local function add(name: string, path: string, more: number)
		local known: Twin? = by_name[name]
		local twin: Twin = if known ~= nil then known else { name = name, more = 0, path = path, apart = true }
		by_name[name] = twin
		twin.more += more
		if more > 0 and not is_apart(path, added) then
			twin.path, twin.apart = path, false
		elseif more > 0 and twin.apart then
			twin.path = path
		end
	end
	for path, source in after do
		local old = count(path, before[path])
		for name, times in count(path, source) do
			add(name, path, times - (old[name] or 0))
			old[name] = nil
		end
		for name, times in old do
			add(name, path, -times)
		end
	end
	local found: { Twin } = {}
	for _, twin in by_name do
		if twin.more > 0 then
			table.insert(found, twin)
		end
	end
	table.sort(found, function(one: Twin, other: Twin): boolean
		return one.name < other.name
	end)
	return found
end

--- Returns the programs of tests that cargo tells of.
local function programs(output: string): { [string]: boolean }
	local found: { [string]: boolean } = {}
	for place, name in string.gmatch(output, "Running ([^\n]-) %([^\n]-deps/([%w_]+)%-%x+%)") do
		found[`{place} {name}`] = true
	end
	return found
end

--- Whether a run has programs of tests that there were not before.
local function has_more_programs(before: string, after: string): boolean
	local old = programs(before)
	for name in programs(after) do
		if not old[name] then
			return true
		end
	end
	return false
end

--- Returns the tests that ran before of which nobody can tell whether they run now, each as a part of a sentence. `outputs` is what
--- the commands wrote before.
function twins.compare(
	found: { Twin },
	before: { [string]: results.Results },
	outputs: { [string]: string },
	runs: { counts.Run }
): { string }
	local said: { string } = {}
	for _, twin in found do
		local old, new, told, more_programs = 0, 0, false, false
		for _, run in runs do
			local known = before[run.command]
			if known ~= nil and run.report ~= nil then
				local ran = counts.executions(known, twin.name)
				old += ran
				new += counts.executions(run.report, twin.name)
				told = told or counts.tells_places(known, run.report, twin.name)
				more_programs = more_programs or has_more_programs(outputs[run.command] or "", run.output)
			end
		end
		if old > 0 and new < old + twin.more and not told and (more_programs or not twin.apart) then
			table.insert(said, `\`{twin.name}\` is a test of {twin.path}, too, and ran {new} of {old + twin.more} times`)
		end
	end
	return said
end

return twins
