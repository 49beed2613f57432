--!strict
--- Lets a model look into the project before it answers: it finds files, searches them and reads them, and changes nothing. Looks are
--- counted and bounded, and the lines that were shown are kept, so that a line that is cited can be told from one that is made up.
--- Knows no mode; a flow needs the `files` permission for it.

local cited = require("./cited")
local failure = require("./failure")
local files = require("@nietz/files")
local json = require("@nietz/json")
local list = require("./list")
local llm = require("@nietz/llm")
local mind = require("./mind")
local personas = require("@nietz/personas")
local searching = require("./tools/searching")
local source = require("./tools/source")
local template = require("@nietz/template")
local text = require("@nietz/text")
local ui = require("@nietz/ui")

local look = {}

--- What a persona may have in its `tools`, and the tool that it is.
local TOOLS: { [string]: searching.Tool } = { find = searching.FIND, grep = searching.GREP, read = searching.READ }

--- One look: the tool, what it was asked, and how many lines it has shown; none where it failed.
export type Look = { tool: string, asked: source.Arguments, lines: number? }
--- A line of a file that was shown to a model.
export type Line = { path: string, number: number, text: string }
--- The most looks of one reply, and the most bytes that one of them shows.
export type Limits = { looks: number, bytes: number }
--- What a model looks with, and what came of it.
export type Looker = {
	limits: Limits,
	tools: { [string]: llm.Tool },
	looks: { Look },
	lines: { Line },
}

--- The most lines of a file that one look shows.
local MOST_LINES = 300
--- The most bytes of one look, whatever room there is.
local MOST_BYTES = 16_000
--- How many lines of a place that is cited are told: of `a.rs:10-40` the first ones.
local MOST_CITED = 6

--- How often a persona may look before one reply, and the share of its window, and the tokens without one, that this may take.
local LOOKS, SHARE, ROOM = 4, 0.1, 8_000
--- How many rounds of tools an exchange has beside its looks, for what comes too late.
local LATE = 3

--- Returns what a persona may look with, by the `tools` of its file.
function look.tools_of(persona: personas.Persona): { string }
	local wanted: { string } = if type(persona.meta.tools) == "table" then persona.meta.tools else {}
	return list.filter(wanted, function(name): boolean
		return TOOLS[name] ~= nil
	end)
end

--- Returns the files of the workspace as tools read them; what is shown of a search is noted.
local function workspace(lines: { Line }): source.Source
	return {
		read = function(_, path: string): string
			local file = files.read(path)
			if file == nil then
				error({ code = "request-invalid", message = `{path} does not exist` }, 0)
			end
			return (file :: files.File).text
		end,
		find = function(_, glob: string)
			return files.find(glob)
		end,
		grep = function(_, pattern: string, glob: string?, part: source.Part?): source.Found
			local found = files.grep(pattern, glob, part)
			for _, line in found.lines do
				table.insert(lines, { path = line.path, number = line.line, text = line.text })
			end
			return found
		end,
	}
end

--- Notes the lines of a file that a model was shown, by what it was shown.
local function note_lines(lines: { Line }, path: string, shown: string)
	for _, line in string.split(shown, "\n") do
		local number, text = string.match(line, "^(%d+)\t(.*)$")
		if number ~= nil and text ~= nil then
			table.insert(lines, { path = source.normalize(path), number = tonumber(number) or 0, text = text })
		end
	end
end

--- Returns what a model may look with. `on_look` is told of each look before it happens.
function look.offer(names: { string }, limits: Limits, on_look: (shown: string) -> ()): Looker
	local looker: Looker = { limits = limits, tools = {}, looks = {}, lines = {} }
	local from, seen, asked = workspace(looker.lines), {} :: source.Seen, {} :: { [string]: boolean }
	local warned = false
	for _, name in names do
		local tool = TOOLS[name]
		local function run(arguments: source.Arguments): string
			local given = table.clone(arguments)
			if name == "read" then
				given.lines = math.min(given.lines or MOST_LINES, MOST_LINES)
			end
			local shown = source.shorten(tool.run(from, given, seen), limits.bytes)
			if name == "read" then
				note_lines(looker.lines, arguments.path, shown)
			end
			return shown
		end
		looker.tools[name] = {
			description = tool.description,
			parameters = tool.parameters,
			run = function(arguments: source.Arguments): string
				if #looker.looks >= limits.looks then
					if warned then
						llm.stop("looks")
					end
					warned = true
					error("no look is left. Answer now, from what you have seen", 0)
				end
				local one: Look = { tool = name, asked = arguments, lines = nil }
				table.insert(looker.looks, one)
				on_look(look.text(one))
				local question = `{name} {json.encode(arguments)}`
				if asked[question] then
					error("you have asked just this already: the answer is above", 0)
				end
				asked[question] = true
				local before = #looker.lines
				local ok, shown = pcall(run, arguments)
				if not ok and failure.is(shown, "stopped") then
					error(shown, 0)
				elseif not ok then
					-- As a text: whatever went wrong here, the model can go on without it.
					local raised = failure.of(shown)
					local hint = searching.hint(from, arguments, raised, "there are other files, see `find`")
					error(raised.message .. (if hint then "; " .. hint else ""), 0)
				end
				one.lines = #looker.lines - before
				return shown
			end,
		}
	end
	return looker
end

--- Returns what a model is told of its tools.
local function prompt_of(looker: Looker): string
	local names: { string } = {}
	for name in looker.tools do
		table.insert(names, `\`{name}\``)
	end
	table.sort(names)
	return template.render("./look/look.md", { looks = looker.limits.looks, tools = table.concat(names, ", ") })
end

--- Returns what a persona looks with before it answers, with the tools of its file; nil where it has none. `label` is shown
--- while it looks.
function look.by(persona: personas.Persona, label: string, model: string?): Looker?
	local names = look.tools_of(persona)
	local room = mind.room(SHARE, ROOM, model)
	local limits = { looks = LOOKS, bytes = math.min(MOST_BYTES, math.floor(4 * room / LOOKS)) }
	return if #names == 0
		then nil
		else look.offer(names, limits, function(shown: string)
			ui.status(`{label}: {shown}`)
		end)
end

--- Gives a request the tools of whoever looks, and tells of them at the end of its prompt.
function look.equip(chat: llm.Chat, looker: Looker)
	chat.tools, chat.rounds = looker.tools, looker.limits.looks + LATE
	chat.prompt = `{chat.prompt}\n\n{text.trim(prompt_of(looker))}`
end

--- Returns looks as people read them, in one line; nil where there are none.
function look.told(looks: { Look }): string?
	local told = list.map(looks, function(one): string
		return `\`{look.text(one)}\``
	end)
	return if #told > 0 then table.concat(told, ", ") else nil
end

--- Returns a look as people read it: `grep "fee" src/**`.
function look.text(one: Look): string
	local asked = one.asked
	if one.tool == "grep" then
		return `grep "{asked.pattern}"{if asked.glob then ` {asked.glob}` else ""}`
	elseif one.tool == "find" then
		return `find {asked.glob}`
	end
	local first = asked.from_line or 1
	local part = if asked.lines then `:{first}-{first + asked.lines - 1}` elseif asked.from_line then `:{first}-` else ""
	return `read {asked.path}{part}`
end

--- Returns lines as places that texts can cite.
function look.places(lines: { Line }): { { path: string, first: number, last: number } }
	return list.map(lines, function(line): { path: string, first: number, last: number }
		return { path = line.path, first = line.number, last = line.number }
	end)
end

--- Returns the lines of these that a text cites as `path:line` or `path:line-line`, each once.
function look.cited(value: string, lines: { Line }): { Line }
	local found: { Line } = {}
	for _, place in cited.places(value, look.places(lines)) do
		local path, first, last = string.match(place, "^(.-):(%d+)%-?(%d*)$")
		local from = tonumber(first) or 0
		for number = from, math.min(tonumber(last) or from, from + MOST_CITED - 1) do
			local line = list.find(lines, function(one): boolean
				return one.path == path and one.number == number
			end)
			if line ~= nil and table.find(found, line) == nil then
				table.insert(found, line)
			end
		end
	end
	return found
end

return look
