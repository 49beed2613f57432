--!strict
--- The files that commands name: scripts, tests and folders of tests by their paths, and modules that an interpreter starts.

local git = require("@nietz/git")
local globs = require("./globs")
local text = require("@nietz/text")

local named = {}

--- Adds a path that is there at the start.
local function add(paths: { string }, start: string, path: string)
	if not table.find(paths, path) and #git.files(start, path).paths > 0 then
		table.insert(paths, path)
	end
end

--- Whether a path is called like one of tests.
function named.like_tests(path: string): boolean
	return text.search(path, "(?i)test|spec|check|verif|e2e") ~= nil
end

--- Returns the files and folders of the start commit that the user's own commands name. (Files that a model's commands name are
--- the ones that it is to change.)
function named.paths(commands: { string }, start: string): { string }
	local paths: { string } = {}
	for _, command in commands do
		for word in string.gmatch(command, "[^%s'\"=;|&<>()]+") do
			-- A program's own path, a script or a folder of tests; never an option, and nothing outside.
			local path = string.gsub(string.gsub(word, "^%./", ""), "/+$", "")
			local inside = string.sub(path, 1, 1) ~= "/" and string.sub(path, 1, 1) ~= "-" and string.find(path, "..", 1, true) == nil
			local like_path = string.find(word, "/", 1, true) or string.find(path, "%.%a+$") or named.like_tests(path)
			local special = string.find(path, "[%*%?%[%]{}\\!]")
			if path ~= "" and inside and like_path and not special then
				add(paths, start, path)
			end
		end
		local module = string.match(command, "%-m%s+([%w_%.]+)")
		if module ~= nil then
			local place = string.gsub(module, "%.", "/")
			add(paths, start, `{place}.py`)
			add(paths, start, `{place}/__main__.py`)
		end
	end
	return paths
end

--- Returns the targets of a makefile's rules that are files to `make`, as far as they are plain names.
function named.targets_of(makefile: string): { [string]: boolean }
	local found: { [string]: boolean }, phony: { [string]: boolean } = {}, {}
	for _, line in text.lines(makefile) do
		local names, rest = string.match(line, "^([^\t#=:][^#=:]*):(.*)$")
		-- `NAME := value` is no rule.
		local is_rule = rest ~= nil and string.find(rest, "^:*=") == nil
		for name in string.gmatch(if is_rule and names ~= nil then names else "", "%S+") do
			if name == ".PHONY" then
				for word in string.gmatch(rest or "", "%S+") do
					phony[word] = true
				end
			elseif string.find(name, "^[%w_%-]+$") ~= nil then
				found[name] = true
			end
		end
	end
	for name in phony do
		found[name] = nil
	end
	return found
end

--- Returns the files that a makefile or a script takes in where they are there, and does without where they are not.
function named.optional(source: string): { string }
	local paths: { string } = {}
	for _, line in text.lines(source) do
		local included = string.match(line, "^%-include%s+(.*)$") or string.match(line, "^sinclude%s+(.*)$")
		for path in string.gmatch(included or "", "[%w_%./%-]+") do
			table.insert(paths, (string.gsub(path, "^%./", "")))
		end
		-- `[ -f settings ] && . ./settings`, or a file whose absence is no failure.
		local asked = string.find(line, "%-[efrs]%s") ~= nil or string.find(line, "||%s*true") ~= nil or string.find(line, "||%s*:") ~= nil
		local patterns: { string } = if asked then { "%f[%S]%.%s+[\"']?([%w_%./%-]+)", "%f[%w]source%s+[\"']?([%w_%./%-]+)" } else {}
		for _, pattern in patterns do
			for path in string.gmatch(line, pattern) do
				table.insert(paths, (string.gsub(path, "^%./", "")))
			end
		end
	end
	return paths
end

--- Returns paths at which a new file keeps commands from doing what they did: the targets of `make`, and what makefiles and the
--- files that commands name take in if it is there. `read` returns the text of a file as it is at the start, empty where there is
--- none.
function named.in_the_way(commands: { string }, files: { string }, start: string, read: (path: string) -> string): { string }
	local paths: { string } = {}
	local function add_new(path: string)
		if
			not table.find(paths, path)
			and #git.files(start, globs.exactly(path)).paths == 0
			and #git.files(start, `{globs.exactly(path)}/**`).paths == 0
		then
			table.insert(paths, path)
		end
	end
	for _, file in files do
		for _, path in named.optional(read(file)) do
			add_new(path)
		end
	end
	for _, command in commands do
		for piece in string.gmatch(command, "[^;&|\n]+") do
			if string.find(` {piece} `, "^%s+g?make%s") == nil then
				continue
			end
			local folder = string.match(piece, "%s%-C%s*(%S+)")
			local place = if folder ~= nil then string.gsub(folder, "^%./", "") .. "/" else ""
			for _, name in { "GNUmakefile", "makefile", "Makefile" } do
				local makefile = read(place .. name)
				for target in named.targets_of(makefile) do
					add_new(place .. target)
				end
				for _, path in named.optional(makefile) do
					add_new(place .. path)
				end
			end
		end
	end
	return paths
end

return named
