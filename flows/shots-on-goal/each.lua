--!strict
--- `--each GLOB`: one part of the goal for each file or folder that matches, with commands of its own that validate it. All are
--- worked on side by side; those that fail are tried again once, when the others are done.

local git = require("@nietz/git")
local goal_rows = require("./goal_rows")
local list = require("../common/list")
local nietz = require("@nietz")
local parts = require("./parts")
local programs = require("../common/programs")
local state = require("./state")
local ui = require("@nietz/ui")

local each = {}

--- The most parts of a session.
local MAX_PARTS = 500
--- How many paths are named in a line.
local MAX_NAMED = 20

--- Returns the files and folders of a commit that match a glob, or nil where there are more than can be listed.
local function matches(commit: string, glob: string): { string }?
	local bare = string.gsub(glob, "/+$", "")
	local paths = {}
	local globs: { string } = if bare == glob then { bare, bare .. "/" } else { bare .. "/" }
	for _, wanted in globs do
		local found = git.files(commit, wanted)
		if found.cut then
			return nil
		end
		for _, path in found.paths do
			table.insert(paths, (string.gsub(path, "/$", "")))
		end
	end
	table.sort(paths)
	return paths
end

--- Returns a path as one word of a shell.
local function quoted(path: string): string
	if string.find(path, "^[%w%._/@%+=:,-]+$") ~= nil then
		return path
	end
	return "'" .. string.gsub(path, "'", "'\\''") .. "'"
end

--- Returns what validates the part at `path`. `passing` are the commands of --validate that exit with 0 on what the session
--- starts from: the others may do so only when all parts are done.
local function commands_of(params: nietz.Values, path: string, passing: { string }): { string }
	if #params.each_validate == 0 then
		return passing
	end
	return list.map(params.each_validate, function(command: string): string
		local filled = string.gsub(command, "{path}", function(): string
			return quoted(path)
		end)
		return filled
	end)
end

--- Returns the parts that the command line asks for; or nil, what is wrong with it and what to do.
function each.find(params: nietz.Values, start: string, passing: { string }): ({ state.Each }?, string?, string?)
	if #params.each == 0 then
		if #params.each_validate > 0 then
			return nil, "--each-validate is for the parts of --each, and there are none", "--each 'src/modules/*'"
		end
		return {}, nil, nil
	end
	for _, command in params.each_validate do
		if string.find(command, "{path}", 1, true) == nil then
			return nil,
				`--each-validate \`{command}\` is the same for all parts`,
				"put {path} where the part's path is to stand; what validates all of it goes behind --validate"
		end
	end
	local found: { state.Each }, seen: { [string]: boolean } = {}, {}
	for _, glob in params.each do
		local paths = matches(start, glob)
		if paths == nil then
			return nil, `--each '{glob}' matches more than can be listed`, "use a narrower glob"
		elseif #paths == 0 then
			return nil,
				`--each '{glob}' matches nothing in the commit that this starts from`,
				"paths are from the top of the repository, as `git ls-files` shows them there"
		end
		for _, path in paths do
			if not seen[path] then
				seen[path] = true
				table.insert(found, { path = path, commands = commands_of(params, path, passing) })
			end
		end
	end
	if #found > MAX_PARTS then
		return nil, `--each matches {#found} files and folders, and a session has at most {MAX_PARTS} parts`, "use a narrower glob"
	end
	if #found[1].commands == 0 and not params.accept_unvalidated then
		local why = if #params.validate == 0
			then "there is no --validate"
			else "what --validate names fails now, and may do so until all of them are done"
		return nil, `nothing validates a part of --each: {why}`, `--each-validate 'CMD \{path}' validates one part`
	end
	local proofs: { string } = params.done_when or {}
	if #params.each_validate == 0 and #passing == #params.validate and #proofs == 0 and not params.accept_unvalidated then
		return nil,
			"nothing can show that a part of --each is reached: all of --validate passes now",
			"--each-validate 'CMD {path}' fails until its part is reached; --done-when CMD fails until all of them are; --accept-unvalidated takes the models' word"
	end
	for _, part in found do
		for _, command in part.commands do
			local _, why = programs.resolve(params, command)
			if why ~= nil then
				return nil, why, "--run PROGRAM allows a program with any arguments"
			end
		end
	end
	return found, nil, nil
end

--- Returns paths as a text.
local function names(found: { state.Goal }): string
	local shown = {}
	for index = 1, math.min(#found, MAX_NAMED) do
		table.insert(shown, found[index].path or found[index].text)
	end
	local more = #found - #shown
	return table.concat(shown, ", ") .. (if more > 0 then ` and {more} more` else "")
end

local function is_unmerged(part: state.Goal): boolean
	return part.stage ~= "merged"
end

--- Works on all parts of the root goal. Returns the result id of the attempt that reached the one that was merged last, and where
--- some were not reached, which.
function each.work(self: state.Session, root: state.Goal, reach: parts.Reach): (number?, string?)
	for index, wanted in self.each do
		local part = goal_rows.new(self, `{root.text}: {wanted.path}`, wanted.commands, root, index, nil)
		part.path = wanted.path
		table.insert(root.children, part)
	end
	ui.say(`• goal {root.id}: {#root.children} parts, at most {self.params.parallel} side by side`)
	local last = parts.work(self, root, root.children, true, reach)
	local failed = list.filter(root.children, is_unmerged)
	if #failed > 0 then
		ui.say(`✗ {#failed} of {#root.children} parts failed, and are tried again: {names(failed)}`)
		for _, part in failed do
			part.stage, part.unmerged = "to come", 0
		end
		last = parts.work(self, root, failed, false, reach) or last
	end
	local missing = list.filter(failed, is_unmerged)
	if #missing == 0 then
		return last, nil
	end
	return last, `{#missing} of {#root.children} parts were not reached: {names(missing)}`
end

--- Returns what validates all parts together: what validates the goal, or where nothing does, what validates each of them.
function each.steps(root: state.Goal): { state.Step }
	if #root.steps > 0 then
		return root.steps
	end
	local steps = {}
	for _, part in root.children do
		table.move(part.steps, 1, #part.steps, #steps + 1, steps)
	end
	return steps
end

return each
