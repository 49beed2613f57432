--!strict
--- The code that a developer names: finds and reads the files, and shows them to the model. What of a long file is shown is up to
--- `excerpt`.

local app = require("./app")
local commands = require("./commands")
local excerpt = require("./excerpt")
local failure = require("../common/failure")
local files = require("@nietz/files")
local json = require("@nietz/json")
local stack_trace = require("./stack_trace")
local template = require("@nietz/template")
local text = require("@nietz/text")
local translations = require("../common/translations")
local ui = require("@nietz/ui")
local yaml = require("@nietz/yaml")

local code = {}

local FILES = yaml.load("./files.yaml")
local ENDINGS: { [string]: boolean } = {}
for _, ending in FILES.endings do
	ENDINGS[ending] = true
end

--- The part of the context window that code and evidence may take, and the most, in bytes: the rules go through it at each reply.
local WINDOW_SHARE, MOST_BYTES = 0.4, 600_000
--- How many files one message can bring in.
local MAX_FILES = 5

--- `sure` says that it looks like a file and nothing else: where it is not found, the developer is asked.
export type FileReference = { path: string, line: number?, sure: boolean }

--- A file, and the SHA-256 of its bytes where that is known.
export type Found = { shown: excerpt.Shown, sha256: string?, whole: string? }

--- A text as a prompt shows it.
type Block = { name: string, what: string | false, note: string | false, text: string }

local NAMES: { string } = {}
for _, name in FILES.names do
	table.insert(NAMES, (string.gsub(name, "%.", "\\.")))
end
local NAME = `(?:{table.concat(NAMES, "|")})(?:\\.\\w+)*\\b`
local PATH = `(?:~/|\\.\{1,2}/|/)?(?:[\\w@.+-]+/)*(?:{NAME}|\\.?[\\w@+-][\\w@.+-]*\\.[A-Za-z][A-Za-z0-9]\{0,9})`
local REFERENCE = `(?:File ")?({PATH})(?:(?:"?, line |:|\\()([0-9]+))?`

--- Returns whether a path is called as files are: by its ending, or as one of those that have none.
function code.looks_like_file(path: string): boolean
	local ending = string.lower(string.match(path, "%.(%w+)$") or "")
	return ENDINGS[ending] == true or code.is_known_name(path)
end

--- Whether a path has the name of a file that is known without an ending, such as `Dockerfile`.
function code.is_known_name(path: string): boolean
	return text.search(path, `(?:^|/){NAME}$`) ~= nil
end

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
		local begin = string.sub(value, math.max(match.first - 2, 1), match.first)
		local behind = string.sub(value, match.last + 1, match.last + 1)
		local url = string.find(before, "://", 1, true) ~= nil or begin == "://" or string.find(before, "[%w]$") ~= nil
		-- What is attached is evidence, and no name in passing.
		local attached = string.sub(path, 1, 1) == "@" or string.sub(before, -1) == "@"
		local is_call = behind == "(" and line == nil
		local is_hidden = string.match(path, "^%.[%w_]") ~= nil
		if is_hidden and string.find(before, "[^%s\"'`(]$") ~= nil then
			-- The dot ends what stands before it.
			path, is_hidden = string.sub(path, 2), false
		end
		local bare = code.is_known_name(path) and string.find(path, "/", 1, true) == nil
		if
			not url
			and not attached
			and not is_call
			and code.looks_like_file(path)
			and table.find(FILES.never, string.lower(path)) == nil
		then
			path = string.gsub(path, "^%./", "")
			if seen[path] == nil then
				seen[path] = { path = path, line = line, sure = not bare and not is_hidden }
				table.insert(found, seen[path])
			elseif seen[path].line == nil then
				seen[path].line = line
			end
		end
	end
	return found
end

--- Makes what prompts show of code and evidence anew, within the part of the context window that they may take.
function code.update(self: app.App)
	excerpt.update_all(self.code_files, math.min(self.context_tokens * 4 * WINDOW_SHARE, MOST_BYTES))
end

--- Sees to it that these lines of a file are at hand.
function code.hold(shown: excerpt.Shown, first: number, last: number)
	for number = first, last do
		if shown.lines[number] == nil then
			local ok, part = pcall(files.read_lines, shown.path, first, last - first + 1)
			if ok and part ~= nil then
				excerpt.add_lines(shown, part.first, text.lines(part.text))
			end
			return
		end
	end
end

--- Adds a line that was named to those that are shown.
function code.focus_on(shown: excerpt.Shown, line: number?)
	if line ~= nil and line <= shown.count and table.find(shown.focus, line) == nil then
		table.insert(shown.focus, line)
		code.hold(shown, math.max(line - excerpt.CONTEXT_LINES, 1), math.min(line + excerpt.CONTEXT_LINES, shown.count))
	end
end

--- Reads a file that is too large to be read at once, or that is not quite UTF-8: its beginning and its end.
local function read_parts(path: string): Found?
	local head = files.read_lines(path, 1, excerpt.HEAD_LINES)
	if head == nil then
		return nil
	end
	local shown = excerpt.new(head.path, "code", head.lines, head.bytes)
	excerpt.add_lines(shown, 1, text.lines(head.text))
	local rest = head.lines - head.count
	if rest > 0 then
		local wanted = if excerpt.is_long(head.bytes, head.lines) then math.min(rest, excerpt.TAIL_LINES) else rest
		local tail = files.read_lines(path, -wanted, wanted)
		if tail ~= nil then
			excerpt.add_lines(shown, tail.first, text.lines(tail.text))
		end
	end
	return { shown = shown, sha256 = head.sha256 }
end

--- Reads a file; nil where there is none. Raises what keeps it from being read.
local function read_path(path: string): Found?
	local ok, read = pcall(files.read, path)
	if ok then
		return if read == nil then nil else { shown = excerpt.of_text(read.path, "code", read.text), whole = read.text }
	elseif failure.is(read, "request-invalid") then
		return read_parts(path)
	end
	return error(read, 0)
end

--- Whether the user may give leave to read what was refused.
local function can_be_granted(problem: failure.Failure): boolean
	return problem.hint ~= nil and string.find(problem.hint, "--allow-read", 1, true) ~= nil
end

--- Reads a file that may not be read yet, once the developer had the time to give leave: a run that is resumed with
--- `--allow-read` has it. Shows why where it is refused all the same.
local function read_when_granted(self: app.App, path: string, asks: boolean): (Found?, boolean)
	local ok, found = pcall(read_path, path)
	if not ok and asks then
		local problem = failure.of(found)
		if can_be_granted(problem) and ui.attended() then
			local flag = string.match(problem.hint :: string, "%-%-allow%-read.*") or ""
			ui.ask({
				id = "outside",
				prompt = self.t("code.outside", { path = path, message = problem.message, run = self.run, flag = flag }),
				optional = true,
				commands = commands.skipping(self.t, self.lang),
			})
			ok, found = pcall(read_path, path)
		end
	end
	if ok then
		return found, false
	end
	if asks then
		local problem = failure.of(found)
		ui.say(self.t("code.refused", { path = path, message = problem.message, hint = problem.hint or "" }))
	end
	return nil, true
end

--- Reads a path, or else a file of that name anywhere in the workspace. Returns the file; or nil and the paths that may be
--- meant; or nil, none, and true where it exists and cannot or must not be read, which was shown to whoever can be asked.
function code.find_file(self: app.App, path: string, asks: boolean): (Found?, { string }, boolean)
	local found, refused = read_when_granted(self, path, asks)
	if found ~= nil or refused then
		return found, {}, refused
	end
	local plain = string.gsub(path, "^[~./]+", "")
	local all = files.find(`**/{plain}`).paths
	if #all == 1 then
		local read, one = pcall(read_path, all[1])
		return if read then one else nil, {}, false
	end
	return nil, all, false
end

--- Adds a file to what is shown, or a line of one that is shown already. Returns whether it is new.
function code.add_file(self: app.App, found: excerpt.Shown, line: number?): boolean
	for _, file in self.code_files do
		if file.path == found.path and file.kind == found.kind then
			code.focus_on(file, line)
			return false
		end
	end
	code.focus_on(found, line)
	table.insert(self.code_files, found)
	if table.find(self.doc.codeFiles, found.path) == nil then
		table.insert(self.doc.codeFiles, found.path)
	end
	ui.say(self.t("code.read", { path = found.path, lines = translations.counted(self.t, "lines", found.count) }))
	return true
end

--- Asks for the path of a file that was not found, and returns the file.
local function ask_where(self: app.App, path: string, candidates: { string }): Found?
	local prompt = if #candidates > 0
		then self.t("code.which", { path = path, list = table.concat(candidates, ", ") })
		else self.t("code.where", { path = path })
	local line = text.trim((ui.ask({ id = "path", prompt = prompt, optional = true, commands = commands.skipping(self.t, self.lang) })))
	if line == "" then
		return nil
	end
	self.requested_paths[line] = true
	return (code.find_file(self, line, true))
end

--- Reads the files that a text names. With `asks`, the developer is asked once for the path of one that is not found, and told
--- of what cannot be read: a text of theirs names what they mean, a trace names what it came by. Returns the names that were not
--- found.
function code.read_named(self: app.App, value: string, asks: boolean): { string }
	local missing: { string } = json.array({} :: { string })
	local taken = 0
	for _, named in code.named_files(value) do
		local known = false
		for _, file in self.code_files do
			if file.path == named.path then
				code.focus_on(file, named.line)
				known = true
			end
		end
		if known or self.requested_paths[named.path] or taken >= MAX_FILES or stack_trace.is_foreign(named.path) then
			continue
		end
		self.requested_paths[named.path] = true
		taken += 1
		local wants = asks and named.sure
		local found, candidates, refused = code.find_file(self, named.path, wants)
		if found == nil and not refused and wants then
			found = ask_where(self, named.path, candidates)
		end
		if found ~= nil then
			code.add_file(self, found.shown, named.line)
		elseif wants then
			table.insert(missing, named.path)
		end
	end
	code.update(self)
	return missing
end

--- Returns what prompts show of all that the developer showed, in the order in which it came: the beginning of the prompts of the one
--- who asks and the one who judges, so that providers keep it for both. Nil where nothing was shown.
function code.for_prompt(self: app.App): string?
	local blocks: { Block } = {}
	for _, shown in self.code_files do
		table.insert(blocks, { name = shown.name, what = shown.what or false, note = shown.excerpt_note or false, text = shown.excerpt })
	end
	return if #blocks > 0 then text.trim(template.render("./prompts/material.md", { blocks = blocks })) else nil
end

return code
