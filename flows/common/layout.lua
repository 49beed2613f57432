--!strict
--- What a model is told of a repository before it looks, so that it does not guess where files are.

local git = require("@nietz/git")

local layout = {}

--- So many lines at most.
local LINES = 60

--- Returns the files of a commit, one to a line; of many only those at the top, and the folders there with the number of
--- their files. Empty where even they are too many.
function layout.of(commit: string): string
	local found = git.files(commit)
	if found.cut then
		return ""
	end
	if #found.paths <= LINES then
		return table.concat(found.paths, "\n")
	end
	local lines, counts = {}, {}
	for _, path in found.paths do
		local folder = string.match(path, "^[^/]+/")
		local line = folder or path
		if counts[line] == nil then
			table.insert(lines, line)
		end
		counts[line] = (counts[line] or 0) + 1
	end
	if #lines > LINES then
		return ""
	end
	for index, line in lines do
		lines[index] = if string.sub(line, -1) == "/" then `{line} ({counts[line]} files)` else line
	end
	return table.concat(lines, "\n")
end

return layout
