--!strict
--- The code that a developer names: finds and reads the files, and makes excerpts with line numbers for prompts; of a long file
--- the beginning, the end, and the lines around those that were named.

local app = require("./app")
local commands = require("./commands")
local failure = require("../common/failure")
local files = require("@nietz/files")
local json = require("@nietz/json")
local stack_trace = require("./stack_trace")
local text = require("@nietz/text")
local ui = require("@nietz/ui")
local yaml = require("@nietz/yaml")

local code = {}

local FILES = yaml.load("./files.yaml")
local ENDINGS: { [string]: boolean } = {}
for _, ending in FILES.endings do
	ENDINGS[ending] = true
end

--- A file with more bytes and more lines than these is long; so many lines of it are shown from the beginning and the end.
local LONG_BYTES, LONG_LINES, HEAD_LINES, TAIL_LINES = 100_000, 500, 100, 400
--- How many lines are shown before and after one that was named.
local CONTEXT_LINES = 20
--- The part of the context window that code may take.
local WINDOW_SHARE = 0.4
--- How many files one message can bring in.
local MAX_FILES = 5

export type FileReference = { path: string, line: number? }

local PATH = [[(?:~/|\.{1,2}/|/)?(?:[\w@.+-]+/)*[\w@+-][\w@.+-]*\.[A-Za-z][A-Za-z0-9]{0,9}]]
local REFERENCE = `(?:File ")?({PATH})(?:(?:"?, line |:|\\()([0-9]+))?`

--- Returns the files that a text names, each once, with the line where one is named.
function code.named_files(value: string): { FileReference }
	local found: { FileReference } = {}
	local seen: { [string]: FileReference } = {}
	local from = 1
	while #found < 100 do
		local match = text.search(value, REFERENCE, from)
		if match == nil then
			break
		end
		from = match.last + 1
		local path, line = match.groups[1], tonumber(match.groups[2])
		local before = string.sub(value, math.max(match.first - 3, 1), match.first - 1)
		local behind = string.sub(value, match.last + 1, match.last + 1)
		local ending = string.lower(string.match(path, "%.(%w+)$") or "")
		local url = string.find(before, "://", 1, true) ~= nil or string.find(before, "[%w]$") ~= nil or string.sub(before, -1) == "@"
		local is_call = behind == "(" and line == nil
		if not url and not is_call and ENDINGS[ending] and table.find(FILES.never, string.lower(path)) == nil then
			path = string.gsub(path, "^%./", "")
			if seen[path] == nil then
				seen[path] = { path = path, line = line }
				table.insert(found, seen[path])
			elseif seen[path].line == nil then
				seen[path].line = line
			end
		end
	end
	return found
end

local function number_lines(file: app.CodeFile, first: number, last: number): string
	local out = {}
	for number = first, last do
		table.insert(out, `{string.format("%5d", number)}  {file.lines[number]}`)
	end
	return table.concat(out, "\n")
end

--- Returns the text of a file with its true line numbers, at most about `bytes` long.
function code.excerpt(file: app.CodeFile, bytes: number): (string, string?)
	local count = #file.lines
	local is_long = #file.text > LONG_BYTES and count > LONG_LINES
	if not is_long and #file.text + 7 * count <= bytes then
		return number_lines(file, 1, count), nil
	end
	local head, tail = HEAD_LINES, TAIL_LINES
	-- A model with a small window gets less of it, in the same proportion.
	local average = math.max((#file.text + 7 * count) / math.max(count, 1), 8)
	local room = math.floor(bytes / average)
	if room < head + tail then
		head, tail = math.max(math.floor(room * 0.2), 1), math.max(math.floor(room * 0.8), 1)
		if #file.focus > 0 then
			tail = math.max(tail - #file.focus * (2 * CONTEXT_LINES + 1), 1)
		end
	end
	local keep: { [number]: boolean } = {}
	for number = 1, math.min(head, count) do
		keep[number] = true
	end
	for number = math.max(count - tail + 1, 1), count do
		keep[number] = true
	end
	for _, line in file.focus do
		for number = math.max(line - CONTEXT_LINES, 1), math.min(line + CONTEXT_LINES, count) do
			keep[number] = true
		end
	end
	local out, from, left = {}, 1, 0
	while from <= count do
		local last = from
		while last < count and keep[last + 1] == keep[from] do
			last += 1
		end
		if keep[from] then
			table.insert(out, number_lines(file, from, last))
		else
			table.insert(out, `       … lines {from} to {last} are left out …`)
			left += last - from + 1
		end
		from = last + 1
	end
	return table.concat(out, "\n"), if left > 0 then `{count} lines, {left} of them left out` else nil
end

--- Makes the excerpts of all files anew, within the part of the context window that code may take.
local function update_excerpts(self: app.App)
	local room = self.context_tokens * 4 * WINDOW_SHARE
	for index = #self.code_files, 1, -1 do
		local file = self.code_files[index]
		-- The file that was named last gets most; the others share the rest.
		file.excerpt, file.excerpt_note =
			code.excerpt(file, if index == #self.code_files then room * 0.6 else room * 0.4 / math.max(#self.code_files - 1, 1))
	end
end

local function add_file(self: app.App, found: files.File, line: number?)
	for _, file in self.code_files do
		if file.path == found.path then
			if line ~= nil and table.find(file.focus, line) == nil then
				table.insert(file.focus, line)
			end
			return
		end
	end
	local file: app.CodeFile = { path = found.path, text = found.text, lines = text.lines(found.text), focus = {}, excerpt = "" }
	if line ~= nil then
		table.insert(file.focus, line)
	end
	table.insert(self.code_files, file)
	if table.find(self.doc.codeFiles, found.path) == nil then
		table.insert(self.doc.codeFiles, found.path)
	end
	ui.say(self.t("code.read", { path = found.path, lines = #file.lines }))
end

--- Reads a path, or else a file of that name anywhere in the workspace. Returns the file; or nil and the paths that may be
--- meant; or nil, none, and true where it exists and cannot or must not be read, which was shown.
local function find_file(self: app.App, path: string): (files.File?, { string }, boolean)
	local ok, found = pcall(files.read, path)
	if ok and found ~= nil then
		return found, {}, false
	elseif not ok then
		local problem = failure.of(found)
		ui.say(self.t("code.refused", { path = path, message = problem.message, hint = problem.hint or "" }))
		return nil, {}, true
	end
	local plain = string.gsub(path, "^[~./]+", "")
	local all = files.find(`**/{plain}`).paths
	if #all == 1 then
		local read, one = pcall(files.read, all[1])
		return if read then one else nil, {}, false
	end
	return nil, all, false
end

--- Reads the files that a text names. For one that is not found the developer is asked for its path, once. Returns the names
--- that were not found.
function code.read_named(self: app.App, value: string): { string }
	local missing: { string } = json.array({} :: { string })
	local taken = 0
	for _, named in code.named_files(value) do
		local known = false
		for _, file in self.code_files do
			if file.path == named.path then
				add_file(self, file, named.line)
				known = true
			end
		end
		if known or self.requested_paths[named.path] or taken >= MAX_FILES or stack_trace.is_foreign(named.path) then
			continue
		end
		self.requested_paths[named.path] = true
		taken += 1
		local found, candidates, refused = find_file(self, named.path)
		if found == nil and not refused then
			local prompt = if #candidates > 0
				then self.t("code.which", { path = named.path, list = table.concat(candidates, ", ") })
				else self.t("code.where", { path = named.path })
			local said = ui.ask({ id = "path", prompt = prompt, optional = true, commands = commands.skipping(self.t) })
			local line = text.trim(said)
			if line ~= "" then
				found = find_file(self, line)
				self.requested_paths[line] = true
			end
		end
		if found ~= nil then
			add_file(self, found, named.line)
		else
			table.insert(missing, named.path)
		end
	end
	update_excerpts(self)
	return missing
end

--- Returns what prompts show of the code.
function code.for_prompt(self: app.App): { { path: string, text: string, note: string } }
	local shown: { { path: string, note: string, text: string } } = json.array({})
	for _, file in self.code_files do
		table.insert(shown, { path = file.path, text = file.excerpt, note = file.excerpt_note or "" })
	end
	return shown
end

return code
