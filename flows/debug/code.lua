--!strict
--- The code that a developer names: found, read, numbered, and of long files the beginning, the end and what lies
--- around the lines that were named.

local app = require("./app")
local failure = require("../common/failure")
local files = require("@nietz/files")
local json = require("@nietz/json")
local text = require("@nietz/text")
local trace = require("./trace")
local ui = require("@nietz/ui")
local yaml = require("@nietz/yaml")

local code = {}

local FILES = yaml.load("./files.yaml")
local ENDINGS: { [string]: boolean } = {}
for _, ending in FILES.endings do
	ENDINGS[ending] = true
end

--- A file is long with more bytes and more lines than these; so many lines of it are shown from both ends.
local BYTES, LINES, HEAD, TAIL = 100_000, 500, 100, 400
--- So many lines around one that was named.
local AROUND = 20
--- The part of the model's window that code may take.
local SHARE = 0.4
--- How many files one message can bring in.
local MOST = 5

export type Named = { path: string, line: number? }

local PATH = [[(?:~/|\.{1,2}/|/)?(?:[\w@.+-]+/)*[\w@+-][\w@.+-]*\.[A-Za-z][A-Za-z0-9]{0,9}]]
local NAMED = `(?:File ")?({PATH})(?:(?:"?, line |:|\\()([0-9]+))?`

--- Returns the files that a text names, each once, with the line where one is named.
function code.named(value: string): { Named }
	local found: { Named } = {}
	local seen: { [string]: Named } = {}
	local from = 1
	while #found < 100 do
		local match = text.search(value, NAMED, from)
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

local function numbered(file: app.CodeFile, first: number, last: number): string
	local out = {}
	for number = first, last do
		table.insert(out, `{string.format("%5d", number)}  {file.lines[number]}`)
	end
	return table.concat(out, "\n")
end

--- Returns the text of a file with its true line numbers, at most about `bytes` long.
function code.show(file: app.CodeFile, bytes: number): (string, string?)
	local count = #file.lines
	local is_long = #file.text > BYTES and count > LINES
	if not is_long and #file.text + 7 * count <= bytes then
		return numbered(file, 1, count), nil
	end
	local head, tail = HEAD, TAIL
	-- A model with a small window gets less of it, in the same proportion.
	local average = math.max((#file.text + 7 * count) / math.max(count, 1), 8)
	local room = math.floor(bytes / average)
	if room < head + tail then
		head, tail = math.max(math.floor(room * 0.2), 1), math.max(math.floor(room * 0.8), 1)
		if #file.focus > 0 then
			tail = math.max(tail - #file.focus * (2 * AROUND + 1), 1)
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
		for number = math.max(line - AROUND, 1), math.min(line + AROUND, count) do
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
			table.insert(out, numbered(file, from, last))
		else
			table.insert(out, `       … lines {from} to {last} are left out …`)
			left += last - from + 1
		end
		from = last + 1
	end
	return table.concat(out, "\n"), if left > 0 then `{count} lines, {left} of them left out` else nil
end

--- Renders all files anew, within the part of the window that code may take.
local function render(self: app.App)
	local room = self.window * 4 * SHARE
	for index = #self.code, 1, -1 do
		local file = self.code[index]
		-- What was named last is shown best; the others share what is left.
		file.shown, file.note = code.show(file, if index == #self.code then room * 0.6 else room * 0.4 / math.max(#self.code - 1, 1))
	end
end

local function take(self: app.App, found: files.File, line: number?)
	for _, file in self.code do
		if file.path == found.path then
			if line ~= nil and table.find(file.focus, line) == nil then
				table.insert(file.focus, line)
			end
			return
		end
	end
	local file: app.CodeFile = { path = found.path, text = found.text, lines = text.lines(found.text), focus = {}, shown = "" }
	if line ~= nil then
		table.insert(file.focus, line)
	end
	table.insert(self.code, file)
	if table.find(self.doc.codeFiles, found.path) == nil then
		table.insert(self.doc.codeFiles, found.path)
	end
	ui.say(self.t("code.read", { path = found.path, lines = #file.lines }))
end

--- Reads a path as it stands, or by its name anywhere in the workspace. Returns the file, or else the paths that it may
--- be, or else that it is there and must not or cannot be read, which was said.
local function look(self: app.App, path: string): (files.File?, { string }, boolean)
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

--- Reads the files that a text names. A missing one is answered by asking for its path, once. Returns the names that
--- nothing was found for.
function code.take(self: app.App, value: string): { string }
	local missing: { string } = json.array({} :: { string })
	local taken = 0
	for _, named in code.named(value) do
		local known = false
		for _, file in self.code do
			if file.path == named.path then
				take(self, file, named.line)
				known = true
			end
		end
		if known or self.looked_for[named.path] or taken >= MOST or trace.is_foreign(named.path) then
			continue
		end
		self.looked_for[named.path] = true
		taken += 1
		local found, candidates, refused = look(self, named.path)
		if found == nil and not refused then
			local prompt = if #candidates > 0
				then self.t("code.which", { path = named.path, list = table.concat(candidates, ", ") })
				else self.t("code.where", { path = named.path })
			local line = text.trim(ui.ask({ id = "path", prompt = prompt, optional = true }))
			if line ~= "" then
				found = look(self, line)
				self.looked_for[line] = true
			end
		end
		if found ~= nil then
			take(self, found, named.line)
		else
			table.insert(missing, named.path)
		end
	end
	render(self)
	return missing
end

--- Returns what prompts show of the code.
function code.shown(self: app.App): { { path: string, text: string, note: string } }
	local shown: { { path: string, note: string, text: string } } = json.array({})
	for _, file in self.code do
		table.insert(shown, { path = file.path, text = file.shown, note = file.note or "" })
	end
	return shown
end

return code
