--!strict
--- Whole paths into a worktree, as tracebacks show them and models repeat them: tools take them for what they mean.

local kit = require("./kit")

local own_paths = {}

--- The members of arguments that are paths or globs, or have some.
local PATHS = { path = true, paths = true, from = true, to = true, glob = true, files = true, edits = true, moves = true }
--- How the lines of a patch begin that name files.
local HEADS = { "--- ", "+++ ", "diff --git ", "rename from ", "rename to ", "copy from ", "copy to " }

--- Returns the folders that a command finds its worktree in.
local function folders_of(offer: kit.Offer): { string }
	local place = offer.workplace
	local folders = { offer.tree.path }
	if place.validation ~= nil then
		table.insert(folders, place.validation.tree.path)
	end
	table.insert(folders, if place.setup ~= nil then place.setup.path else place.project)
	return folders
end

local function relative(path: string, folders: { string }): string
	for _, folder in folders do
		if path == folder or path == folder .. "/" then
			return "."
		elseif string.sub(path, 1, #folder + 1) == folder .. "/" then
			return string.sub(path, #folder + 2)
		end
	end
	return path
end

--- Returns a patch whose heads name files by their paths from the top.
local function relative_patch(patch: string, folders: { string }): string
	local lines = string.split(patch, "\n")
	for index, line in lines do
		for _, head in HEADS do
			if string.sub(line, 1, #head) ~= head then
				continue
			end
			local names = string.split(string.sub(line, #head + 1), " ")
			for at, name in names do
				-- Some write `a` in front of a whole path.
				local side = string.match(name, "^[ab]()/")
				local prefix = if side ~= nil then string.sub(name, 1, 1) else ""
				local whole = string.sub(name, #prefix + 1)
				local short = relative(whole, folders)
				if short ~= whole then
					names[at] = if prefix ~= "" then `{prefix}/{short}` else short
				end
			end
			lines[index] = head .. table.concat(names, " ")
		end
	end
	return table.concat(lines, "\n")
end

local function walk(value: any, folders: { string }): any
	if type(value) == "string" then
		return relative(value, folders)
	elseif type(value) ~= "table" then
		return value
	end
	local out: { [any]: any } = {}
	for name, item in value do
		out[name] = if type(name) == "number" or PATHS[name] then walk(item, folders) else item
	end
	return out
end

--- Returns arguments in which each path into the worktree is relative to its top.
function own_paths.relative(offer: kit.Offer, arguments: kit.Arguments): kit.Arguments
	local folders = folders_of(offer)
	local out = walk(arguments, folders)
	if type(out.patch) == "string" then
		out.patch = relative_patch(out.patch, folders)
	end
	return out
end

return own_paths
