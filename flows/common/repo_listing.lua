--!strict
--- A short listing of a repository's files for a prompt, so that a model does not guess where files are.

local git = require("@nietz/git")

local repo_listing = {}

--- The longest listing, in lines.
local MAX_LINES = 60

--- Returns the files of a commit, one a line. Where there are too many: the files and folders of the top, each folder with
--- the number of its files. Where even those are too many: an empty text.
function repo_listing.render(commit: string): string
	local found = git.files(commit)
	if found.cut then
		return ""
	end
	if #found.paths <= MAX_LINES then
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
	if #lines > MAX_LINES then
		return ""
	end
	for index, line in lines do
		lines[index] = if string.sub(line, -1) == "/" then `{line} ({counts[line]} files)` else line
	end
	return table.concat(lines, "\n")
end

return repo_listing
