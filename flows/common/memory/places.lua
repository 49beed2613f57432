--!strict
--- Which places are the project's own: a trace goes through the runner, the runtime and libraries, and what matters is where
--- it last was in code that the project can change.

local report = require("./parsers/report")

local places = {}

--- Returns the files of the project whose paths match a glob.
export type Find = (glob: string) -> { string }

--- Folders of what a project did not write, wherever they stand.
local FOREIGN = {
	["node_modules"] = true,
	["site-packages"] = true,
	["dist-packages"] = true,
	[".venv"] = true,
	[".tox"] = true,
	[".nox"] = true,
	[".cargo"] = true,
	[".rustup"] = true,
	[".m2"] = true,
	[".gradle"] = true,
	[".bundle"] = true,
	["bower_components"] = true,
	["__pypackages__"] = true,
}

--- Packages of the JVM's runtime and of what runs its tests: no file of a project is looked for in their names.
local RUNTIME = { "^java/", "^javax/", "^jdk/", "^sun/", "^com/sun/", "^kotlin/", "^scala/", "^groovy/", "^junit/" }
local RUNNERS = { "^org/junit/", "^org/opentest4j/", "^org/hamcrest/", "^org/assertj/", "^org/mockito/", "^org/testng/", "^org/gradle/" }

--- Returns a path relative to the worktree at `top`, or nil where it is outside of it.
function places.in_worktree(path: string, top: string): string?
	local short = string.gsub(path, "^file://", "")
	if string.sub(short, 1, #top + 1) == top .. "/" then
		short = string.sub(short, #top + 2)
	end
	-- A path may go through `..`: `/shop/sub/../tests/x.py`.
	local parts: { string } = {}
	for part in string.gmatch(short, "[^/]+") do
		if part == ".." then
			if #parts == 0 then
				return nil
			end
			table.remove(parts)
		elseif part ~= "." then
			table.insert(parts, part)
		end
	end
	local outside = string.find(short, "^/")
		or string.find(short, "^%a:[\\/]")
		or string.find(short, "^[<%%]")
		or string.find(short, "^%a+:")
	return if outside or #parts == 0 then nil else table.concat(parts, "/")
end

--- Whether a path of the worktree is that of a library that was put there.
local function is_foreign(path: string): boolean
	-- Go, PHP and Ruby keep libraries in `vendor/` at the top; deeper down it is a word as any other.
	if string.find(path, "^vendor/") then
		return true
	end
	for part in string.gmatch(path, "([^/]+)/") do
		if FOREIGN[part] then
			return true
		end
	end
	return string.find(path, "/lib/python%d") ~= nil
end

--- Returns the one file of the project whose path ends in `tail`, or nil. Where several do, it is the one in the folder that
--- `hint` ends in: the path of a package.
local function find_by_tail(tail: string, hint: string?, find: Find?): string?
	for _, patterns in { RUNTIME, RUNNERS, { "^org/apache/maven/" } } do
		for _, pattern in patterns do
			if string.find(tail, pattern) then
				return nil
			end
		end
	end
	if find == nil then
		return nil
	end
	local found = find("**/" .. (string.gsub(tail, "[%[%]%*%?{}]", "[%0]")))
	if #found <= 1 then
		return found[1]
	end
	local best: string?, length, tied = nil, -1, false
	for _, path in found do
		local folder = string.match(path, "^(.*)/[^/]*$") or ""
		local fits = hint ~= nil and (folder == "" or string.sub(`/{hint}`, -#folder - 1) == `/{folder}`)
		if fits and #folder > length then
			best, length, tied = path, #folder, false
		elseif fits and #folder == length then
			tied = true
		end
	end
	return if tied then nil else best
end

--- Returns a place as a path of the project, or nil where it is not in it.
function places.own(place: report.Location, top: string, find: Find?): report.Location?
	local file = places.in_worktree(place.file, top)
	if file ~= nil and place.partial then
		file = find_by_tail(file, place.package, find)
	end
	if file == nil or is_foreign(file) then
		return nil
	end
	return { file = file, line = place.line, ["function"] = place["function"] }
end

return places
