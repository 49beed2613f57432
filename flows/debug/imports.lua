--!strict
--- The files behind a failure: those of the project that its output names, and those which these import. A failing test says where it
--- stands, and seldom where the fault is.

local app = require("./app")
local code = require("./code")
local excerpt = require("./excerpt")
local list = require("../common/list")
local text = require("@nietz/text")
local yaml = require("@nietz/yaml")

local imports = {}

type Language = { endings: { string }, dots: boolean?, patterns: { string }, names: string?, paths: { string } }

local LANGUAGES: { Language } = yaml.load("./imports.yaml")

--- How many imported files one output can bring in, and how many paths are tried for them.
local MOST_READ, MOST_TRIED = 3, 40
--- How many lines of a file are looked at for what it imports.
local MOST_LINES = 200

--- What a file imports: a module, and one of the names that it takes of it.
type Import = { module: string, member: string }

--- Returns the first group of a pattern in a line, or nil.
local function group(line: string, pattern: string): string?
	local found = text.search(line, pattern)
	return if found ~= nil then found.groups[1] or "" else nil
end

--- Returns what the lines of a file import, in a language.
local function imported(language: Language, shown: excerpt.Shown): { Import }
	local found: { Import } = {}
	for number = 1, math.min(shown.count, MOST_LINES) do
		local line = shown.lines[number] or ""
		for _, pattern in language.patterns do
			local module = group(line, pattern)
			if module ~= nil then
				local names = if language.names then group(line, language.names) else nil
				for _, member in string.split(names or "", ",") do
					local path = if language.dots then (string.gsub(module, "%.", "/")) else module
					table.insert(found, { module = path, member = (string.match(member, "[%w_]+")) or "" })
				end
			end
		end
	end
	return found
end

--- Returns a path without `.` and `..` in it.
local function plain(path: string): string
	local parts: { string } = {}
	for _, part in string.split(path, "/") do
		if part == ".." and #parts > 0 then
			table.remove(parts)
		elseif part ~= "" and part ~= "." and part ~= ".." then
			table.insert(parts, part)
		end
	end
	return table.concat(parts, "/")
end

--- Returns the paths where an import may lie, the likeliest first.
local function paths_of(language: Language, shown: excerpt.Shown, import: Import): { string }
	local dir = string.match(shown.path, "^(.*)/[^/]*$") or "."
	local name = string.match(shown.path, "[^/]*$") or ""
	local base = string.gsub(string.gsub(name, "_test%.", "."), "Test%.", ".")
	local parts = { dir = dir, module = import.module, member = import.member, base = base } :: { [string]: string }
	local found: { string } = {}
	for _, path in language.paths do
		if import.member ~= "" or string.find(path, "{member}", 1, true) == nil then
			local filled = plain((string.gsub(path, "{(%w+)}", parts)))
			if filled ~= shown.path and table.find(found, filled) == nil then
				table.insert(found, filled)
			end
		end
	end
	return found
end

--- Returns the languages of a file, by the ending of its name.
local function languages_of(path: string): { Language }
	local ending = string.lower(string.match(path, "%.(%w+)$") or "")
	return list.filter(LANGUAGES, function(language): boolean
		return table.find(language.endings, ending) ~= nil
	end)
end

local function is_shown(self: app.App, path: string): boolean
	return list.some(self.code_files, function(shown): boolean
		return shown.path == path
	end)
end

--- Reads what files import, within these limits.
local function read_imports(self: app.App, importing: { excerpt.Shown })
	local read, tried = 0, 0
	for _, shown in importing do
		for _, language in languages_of(shown.path) do
			for _, import in imported(language, shown) do
				for _, path in paths_of(language, shown, import) do
					if read >= MOST_READ or tried >= MOST_TRIED then
						return
					elseif not self.requested_paths[path] then
						self.requested_paths[path] = true
						tried += 1
						local found = code.find_file(self, path, false)
						if found ~= nil and not is_shown(self, found.shown.path) and code.add_file(self, found.shown, nil) then
							read += 1
							break
						end
					end
				end
			end
		end
	end
end

--- Reads the files of the project that an output names, and those which the files that it names with a line import.
function imports.read_behind(self: app.App, output: string)
	code.read_named(self, output, false)
	local importing: { excerpt.Shown } = {}
	for _, named in code.named_files(output) do
		for _, shown in self.code_files do
			-- Traces name files by their whole paths.
			local same = shown.path == named.path or string.sub(named.path, -#shown.path - 1) == `/{shown.path}`
			if named.line ~= nil and same and table.find(importing, shown) == nil then
				table.insert(importing, shown)
			end
		end
	end
	read_imports(self, importing)
	code.update(self)
end

return imports
