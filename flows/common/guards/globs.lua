--!strict
--- Matches paths with globs as git's files are matched: `*` and `?` stay within a folder, `**` does not, `{a,b}` is either; a glob
--- that names a folder matches all in it.

local globs = {}

--- Returns the globs that one with `{a,b}` stands for.
local function expand(glob: string): { string }
	local before, inner, behind = string.match(glob, "^(.-){([^{}]*)}(.*)$")
	if before == nil then
		return { glob }
	end
	local all = {}
	for _, part in string.split(inner :: string, ",") do
		for _, whole in expand((before :: string) .. part .. (behind :: string)) do
			table.insert(all, whole)
		end
	end
	return all
end

local function matches_part(glob: string, part: string): boolean
	local pattern = string.gsub(glob, "%p", "%%%0")
	pattern = string.gsub(string.gsub(pattern, "%%%*", ".*"), "%%%?", ".")
	return string.find(part, `^{pattern}$`) ~= nil
end

local function matches_from(glob: { string }, at: number, path: { string }, from: number): boolean
	if at > #glob then
		return true
	elseif glob[at] == "**" then
		for skipped = from, #path + 1 do
			if matches_from(glob, at + 1, path, skipped) then
				return true
			end
		end
		return false
	end
	return from <= #path and matches_part(glob[at], path[from]) and matches_from(glob, at + 1, path, from + 1)
end

--- Returns whether a path matches one of these globs.
function globs.matches(all: { string }, path: string): boolean
	local parts = string.split(path, "/")
	for _, glob in all do
		local plain = string.gsub(string.gsub(glob, "^%./", ""), "/+$", "")
		for _, one in expand(plain) do
			if matches_from(string.split(one, "/"), 1, parts, 1) then
				return true
			end
		end
	end
	return false
end

--- Returns a glob that matches just one path, and what is below it.
function globs.exactly(path: string): string
	return (string.gsub(path, "[%*%?%[%]{}\\!]", "\\%0"))
end

return globs
