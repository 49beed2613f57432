--!strict
--- What a developer shows besides words: a pipe, files with `@`, a diff, the output of their command, images. It is kept in the
--- session word for word, shown to the model with the numbers of its lines, and theirs: to quote it gives nothing away.

local app = require("./app")
local code = require("./code")
local excerpt = require("./excerpt")
local failure = require("../common/failure")
local files = require("@nietz/files")
local fix_check = require("./fix_check")
local git = require("@nietz/git")
local imports = require("./imports")
local json = require("@nietz/json")
local list = require("../common/list")
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local stack_trace = require("./stack_trace")
local text = require("@nietz/text")
local translations = require("../common/translations")
local ui = require("@nietz/ui")

local evidence = {}

--- A longer text is not kept in the session, which then says where it is.
local KEPT_BYTES = 100_000
--- How many files one answer can attach with `@`.
local MAX_FILES = 20
--- The most of a diff that is taken, in bytes.
local MAX_DIFF = 200_000

--- What goes with a message as it is, by the endings of its name.
local PICTURES = { png = true, jpg = true, jpeg = true, gif = true, webp = true, pdf = true } :: { [string]: boolean }

--- A piece of evidence as it comes in: its text, or for an image or a PDF none.
type Piece = {
	name: string,
	--- How questions name it, where that is something else.
	block: string?,
	kind: "pipe" | "file" | "diff" | "run" | "verify" | "attachment",
	text: string?,
	bytes: number,
	sha256: string?,
	--- How many lines a text has, and which of a file were meant.
	lines: number?,
	range: string?,
	--- Where the whole of a text is that the session does not keep.
	file: string?,
	exit: number?,
}

--- Notes a piece in the session.
local function note(self: app.App, piece: Piece)
	local own = self.doc.nietz
	own.evidence = own.evidence or json.array({})
	local kept = piece.text ~= nil and #piece.text <= KEPT_BYTES
	table.insert(own.evidence, {
		name = piece.name,
		block = if piece.block ~= piece.name then piece.block else nil,
		kind = piece.kind,
		turn = #self.doc.transcript,
		bytes = piece.bytes,
		sha256 = piece.sha256 or (if piece.text ~= nil then text.sha256(piece.text) else nil),
		lines = piece.lines,
		range = piece.range,
		exit = piece.exit,
		text = if kept then piece.text else nil,
		file = if kept then nil else piece.file or `.nietz/runs/{self.run}`,
	})
end

--- Shows a text to the model from here on, and reads the files of the developer's that it names; and where it is a failure's, those
--- that they import.
local function show(self: app.App, piece: Piece, shown: excerpt.Shown)
	table.insert(self.code_files, shown)
	code.update(self)
	note(self, piece)
	imports.read_behind(self, shown.text)
end

--- How a piece is named in questions, by its kind.
local CALLED = { run = "run", verify = "check", diff = "diff" } :: { [string]: string }

--- Returns a name for a piece that nothing else that was shown has.
local function block_name(self: app.App, piece: Piece): string
	local trace = piece.kind == "pipe" and stack_trace.has_frames(piece.text or "")
	local base = if piece.kind == "pipe" then (if trace then "traceback" else "pipe") else CALLED[piece.kind] or piece.name
	local name, number = base, 1
	while list.some(self.code_files, function(shown): boolean
		return shown.name == name
	end) do
		number += 1
		name = `{base}-{number}`
	end
	return name
end

--- Returns what a piece is, as prompts say it.
local function described(piece: Piece): string?
	if piece.kind == "run" or piece.kind == "verify" then
		return `what \`{piece.name}\` printed, exit code {piece.exit}`
	elseif piece.kind == "diff" then
		return `what \`{piece.name}\` tells of their files`
	end
	return if piece.kind == "pipe" then "what came by a pipe" else nil
end

--- Takes a text in as evidence.
local function take_text(self: app.App, piece: Piece)
	local shown = excerpt.of_text(piece.name, piece.kind, piece.text :: string)
	local block = piece.block or block_name(self, piece)
	shown.name, shown.what = block, described(piece)
	piece.lines, piece.block = shown.count, block
	if piece.kind == "pipe" or piece.kind == "file" or piece.kind == "attachment" then
		local text_id = if block == piece.name then "evidence.taken" else "evidence.named"
		ui.say(self.t(text_id, { name = piece.name, block = block, lines = translations.counted(self.t, "lines", shown.count) }))
	end
	show(self, piece, shown)
end

--- Takes the lines of a file that were meant, and only those.
local function take_range(self: app.App, found: code.Found, first: number, last: number)
	local shown = found.shown
	first, last = math.clamp(first, 1, math.max(shown.count, 1)), math.min(last, shown.count, first + excerpt.LONG_LINES - 1)
	local part = excerpt.new(shown.path, shown.kind, shown.count, shown.bytes)
	code.hold(shown, first, last)
	local lines: { string } = {}
	for number = first, last do
		part.lines[number] = shown.lines[number]
		table.insert(lines, shown.lines[number] or "")
	end
	local value = table.concat(lines, "\n")
	ui.say(self.t("evidence.part", { name = shown.path, first = first, last = last }))
	show(self, {
		name = shown.path,
		kind = "file",
		text = value,
		bytes = #value,
		lines = #lines,
		range = `{first}-{last}`,
	}, part)
end

--- Takes a file in as evidence: all of it as far as it is shown, or the lines that were meant.
local function take_file(self: app.App, found: code.Found, first: number?, last: number?)
	local shown = found.shown
	shown.kind = "file"
	if table.find(self.doc.codeFiles, shown.path) == nil then
		table.insert(self.doc.codeFiles, shown.path)
	end
	-- What is shown as evidence is not shown a second time as code.
	for index = #self.code_files, 1, -1 do
		if self.code_files[index].path == shown.path then
			table.remove(self.code_files, index)
		end
	end
	if first ~= nil and last ~= nil then
		take_range(self, found, first, last)
		return
	end
	code.focus_on(shown, first)
	ui.say(self.t("evidence.taken", { name = shown.path, lines = translations.counted(self.t, "lines", shown.count) }))
	show(self, {
		name = shown.path,
		kind = "file",
		text = found.whole,
		bytes = shown.bytes,
		sha256 = found.sha256,
		lines = shown.count,
		file = shown.path,
	}, shown)
end

--- Takes an image or a PDF, which goes with every question from here on.
local function take_picture(self: app.App, name: string, given: llm.Attached | string, bytes: number)
	table.insert(self.pictures, given)
	ui.say(self.t("evidence.picture", { name = name }))
	note(self, { name = name, kind = "attachment", bytes = bytes, file = if type(given) == "string" then name else nil })
end

--- Takes an image or a PDF in that an answer names. Returns whether there is one.
local function take_named_picture(self: app.App, path: string): boolean
	-- What it shows is no text: that it cannot be read as one says that it is there.
	local ok, found = pcall(files.read, path)
	if ok then
		return found ~= nil
	elseif not failure.is(found, "request-invalid") then
		local problem = failure.of(found)
		ui.say(self.t("code.refused", { path = path, message = problem.message, hint = problem.hint or "" }))
		return true
	end
	take_picture(self, path, path, 0)
	return true
end

--- Asks a model with the images and PDFs that were shown. One that is known to take none is asked without those that came with an
--- answer, and that is said: the session goes on. What the run was given is refused.
function evidence.ask(self: app.App, request: llm.Chat): llm.Reply
	if #self.pictures == 0 then
		return llm.chat(request)
	end
	local with = table.clone(request)
	with.attach = self.pictures
	local ok, reply = pcall(llm.chat, with)
	if ok then
		return reply
	elseif #self.doc.transcript == 0 or not failure.is(reply, "attachment-refused") then
		return error(reply, 0)
	end
	self.pictures = {}
	ui.say(self.t("evidence.no_pictures", { message = failure.of(reply).message }))
	return llm.chat(request)
end

local AT = [[(?:^|[\s("'])@((?:~/|\.{1,2}/|/)?[\w.+@-][\w.+@/-]*[\w+-]|[\w+-])(?::([0-9]+)(?:-([0-9]+))?)?]]

--- Takes the files in that a text names with `@`, with `:12-40` behind the name for these lines alone. What is no file and does not
--- look like one is a word. Returns the names that were not found.
function evidence.take_attached(self: app.App, value: string): { string }
	local missing: { string } = json.array({} :: { string })
	local from, taken = 1, 0
	while taken < MAX_FILES do
		local match = text.search(value, AT, from)
		if match == nil then
			break
		end
		from = match.last + 1
		taken += 1
		local path, first, last = match.groups[1], tonumber(match.groups[2]), tonumber(match.groups[3])
		if PICTURES[string.lower(string.match(path, "%.(%w+)$") or "")] then
			if not take_named_picture(self, path) then
				ui.say(self.t("evidence.missing", { name = path }))
				table.insert(missing, path)
			end
			continue
		end
		local meant = code.looks_like_file(path) or string.find(path, "/", 1, true) ~= nil
		local found, _, refused = code.find_file(self, path, meant)
		if found ~= nil then
			take_file(self, found, first, last)
		elseif meant and not refused then
			ui.say(self.t("evidence.missing", { name = path }))
			table.insert(missing, path)
		end
	end
	return missing
end

--- Takes in how the working tree differs from a revision.
local function take_diff(self: app.App, revision: string)
	local now = git.snapshot().commit
	local change: git.Change = { from = revision, to = now }
	local parts: { string }, left_out: { string } = {}, {}
	local size, count = 0, 0
	repeat
		local page = git.hunks(change)
		for _, file in page.files do
			change.after = file.path
			count += 1
			local lines = { `--- {file.old_path or file.path} {file.kind} {file.path}` }
			for _, hunk in file.hunks do
				table.insert(lines, `@@ -{hunk.old_start},{hunk.old_count} +{hunk.new_start},{hunk.new_count} @@ {hunk.heading or ""}`)
				table.insert(lines, (string.gsub(hunk.text, "\n$", "")))
			end
			local whole = table.concat(lines, "\n")
			if size + #whole > MAX_DIFF then
				table.insert(left_out, `{file.path} ({#file.hunks} hunks)`)
			else
				size += #whole
				table.insert(parts, whole)
			end
		end
	until not page.cut
	if count == 0 then
		ui.say(self.t("evidence.no_diff", { revision = revision }))
		return
	end
	if #left_out > 0 then
		table.insert(parts, `Left out, because it is long: {table.concat(left_out, ", ")}`)
	end
	local value = table.concat(parts, "\n")
	local piece: Piece = { name = `git diff {revision}`, kind = "diff", text = value, bytes = #value }
	local block = block_name(self, piece)
	piece.block = block
	local files = translations.counted(self.t, "files", count)
	ui.say(self.t("evidence.diff", { revision = revision, files = files, left = #left_out, block = block }))
	take_text(self, piece)
end

--- Returns the piece that a command brought last.
local function last_of(self: app.App, kind: string): any
	local all = self.doc.nietz.evidence or {}
	for index = #all, 1, -1 do
		if all[index].kind == kind then
			return all[index]
		end
	end
	return nil
end

--- Runs a command of the developer's and takes in what it says, if that is new.
local function take_output(self: app.App, kind: "run" | "verify", command: string, seconds: number)
	ui.say(self.t("verify.runs", { command = command }))
	local ran = fix_check.exec(self, kind, command, seconds)
	if ran.cannot ~= nil then
		ui.say(self.t("evidence.cannot", { command = command, why = ran.cannot }))
	elseif kind == "verify" and ran.holds then
		ui.say(self.t("evidence.passes", { command = command }))
	end
	local last = last_of(self, kind)
	if last ~= nil and last.sha256 == text.sha256(ran.output) and last.exit == ran.exit then
		ui.say(self.t("evidence.same", { command = command }))
		return
	end
	local piece: Piece = {
		name = command,
		kind = kind,
		text = ran.output,
		bytes = #ran.output,
		exit = ran.exit,
		file = ran.file,
	}
	local block = block_name(self, piece)
	piece.block = block
	if ran.cannot == nil and not (kind == "verify" and ran.holds) then
		local told = self.t("evidence.ran", { command = command, exit = ran.exit, block = block })
		ui.say(told .. "\n\n```\n" .. fix_check.tail(ran.output) .. "\n```")
	end
	take_text(self, piece)
end

--- Whether there is a command that can be run again.
function evidence.can_run_again(self: app.App): boolean
	return self.params.run ~= nil or self.params.verify ~= nil
end

--- Runs the command of `--run` again, or where there is none that of `--verify`, and takes in what it says now.
function evidence.again(self: app.App)
	if self.params.run ~= nil then
		take_output(self, "run", self.params.run, self.params.verify_seconds)
	elseif self.params.verify ~= nil then
		take_output(self, "verify", self.params.verify, self.params.verify_seconds)
	end
	app.save(self)
end

--- What a developer says the problem is, and the text that it was taken from, where that is evidence.
export type Problem = { description: string, source: { name: string, kind: "pipe" | "file", text: string }? }

--- Returns the first line that is not empty.
local function first_line(value: string): string
	return text.trim((string.match(value, "%S[^\n]*") or ""))
end

--- Returns the problem that the params have, or nil where they have none. One that comes by a pipe or from a file has its first
--- line as its name, and is evidence as a whole; so is a pipe alone.
function evidence.problem(ctx: nietz.Context): Problem?
	local given: string? = ctx.params.problem
	local origin = if ctx.origins.problem then ctx.origins.problem[1] else nil
	if given ~= nil and origin ~= nil and origin.kind ~= "typed" and string.find(given, "\n", 1, true) ~= nil then
		local kind: "pipe" | "file" = if origin.kind == "pipe" then "pipe" else "file"
		local name = if kind == "file" and origin.name ~= nil then origin.name else "standard input"
		return { description = first_line(given), source = { name = name, kind = kind, text = given } }
	elseif given ~= nil then
		return { description = text.trim(given) }
	end
	for _, attached in ctx.attachments do
		if attached.text ~= nil and attached.name == "standard input" then
			return { description = first_line(attached.text) }
		end
	end
	return nil
end

--- Takes in what the run was given: the problem's own text, attachments, the diff, and what the commands say. Fails where there is
--- no repository and one is needed: better now than after an hour.
function evidence.take_given(self: app.App, ctx: nietz.Context, problem: Problem)
	local params = ctx.params
	if problem.source ~= nil then
		local source = problem.source
		take_text(self, {
			name = source.name,
			kind = source.kind,
			text = source.text,
			bytes = #source.text,
			file = if source.kind == "file" then source.name else nil,
		})
	end
	for _, attached in ctx.attachments do
		if attached.text == nil then
			take_picture(self, attached.name, attached, attached.bytes)
			continue
		end
		take_text(self, {
			name = attached.name,
			kind = if attached.name == "standard input" then "pipe" else "attachment",
			text = attached.text,
			bytes = attached.bytes,
			file = if attached.name == "standard input" then nil else attached.name,
		})
	end
	if params.diff ~= nil then
		take_diff(self, params.diff)
	end
	if params.run ~= nil then
		take_output(self, "run", params.run, params.verify_seconds)
	end
	if params.verify ~= nil and params.verify ~= params.run then
		take_output(self, "verify", params.verify, params.verify_seconds)
	end
	if self.doc.nietz.evidence ~= nil then
		app.save(self)
	end
end

return evidence
