--!strict
--- What the command line and the configuration offer, and what follows from both: cycles and personas.

local cited = require("../common/cited")
local llm = require("@nietz/llm")
local members = require("./members")
local mind = require("../common/mind")
local nietz = require("@nietz")
local personas = require("@nietz/personas")
local rules = require("./rules")
local text = require("@nietz/text")

local options = {}

--- The longest context of a small mind, in letters.
local SMALL_CONTEXT = 2000

--- The manifest's `params`.
options.PARAMS = {
	request = { type = "string", positional = true, help = "What the council shall decide, up to 5000 letters" },
	context = {
		type = "string",
		many = true,
		help = "What everybody should know: facts, or @FILE for a file, which is cited by its lines; may be given several times",
	},
	clarify = {
		type = "string",
		default = "auto",
		choices = { "auto", "always", "never" },
		help = "Ask before the debate: where the request is ambiguous, in any case, or not at all",
	},
	consider = {
		type = "string",
		default = "auto",
		choices = { "auto", "never" },
		help = "Ask beforehand whether a council is worth it, and offer one plain answer where it is not",
	},
	look = {
		type = "string",
		default = "auto",
		choices = { "auto", "always", "never" },
		help = "Let members look into the files of this folder before they speak: where --context @FILE was given, in any case, or not",
	},
	models = { type = "string", help = "The models of the seats, in turn: openai/a,anthropic/b" },
	personas = { type = "string", help = 'Who debates, by name: "Senior Architect, QA Engineer"; a contrarian is always there' },
	cycles = { type = "integer", min = 1, help = "The most cycles of debate [default: 10, or 20 with --extended]" },
	extended = { type = "boolean", default = false, help = "Let the debate go on beyond 10 cycles" },
	pause = { type = "boolean", default = true, help = "Go on without asking you between cycles and at the end" },
	control = {
		type = "boolean",
		default = false,
		help = "Spend the same tokens on one model without a council, ask it once plainly, too, and have all judged blind",
	},
	judge = { type = "string", help = "The model that judges [default: the run's model]" },
	spread = {
		type = "boolean",
		default = false,
		help = "Let each member speak in a run of its own: with a store, on whichever worker is free",
	},
	save = { type = "string", help = "Write the session to this file, .json or .yaml, or the decision, .md" },
} :: { [string]: nietz.Param }

--- The manifest's `settings`.
options.SETTINGS = {
	cycle_limit = {
		type = "integer",
		default = rules.EXTENDED,
		min = 1,
		max = 1000,
		limit = true,
		help = "The most cycles of debate that anybody may ask for",
	},
} :: { [string]: nietz.Setting }

--- A number of cycles, and whether the debate is an extended one.
export type Limit = { cycles: number, extended: boolean, most: number }

--- Returns how long the debate may be; raises where more is wanted than the configuration allows.
function options.debate_limit(params: nietz.Values, settings: nietz.Values): Limit
	local most = settings.cycle_limit
	local wanted = params.cycles
	if wanted ~= nil and wanted > most then
		nietz.usage(`--cycles {wanted} is more than the limit of {most}`, "flows.council.cycle_limit in config.yaml sets it")
	end
	local extended = params.extended or (wanted ~= nil and wanted > rules.CYCLES)
	local cycles = wanted or (if extended then most else math.min(most, rules.CYCLES))
	return { cycles = cycles, extended = extended, most = most }
end

--- Returns the personas that `--personas` names; raises at the first name that no persona has.
function options.named_personas(wish: string?): { personas.Persona }?
	if wish == nil then
		return nil
	end
	local found: { personas.Persona } = {}
	for _, part in text.split(wish :: string, ",") do
		local name = text.trim(part)
		local persona = members.find(name)
		if name ~= "" and (persona == nil or table.find(persona.tags, "moderator") ~= nil) then
			local names: { string } = {}
			for _, debater in members.debaters() do
				table.insert(names, debater.name)
			end
			local near = members.nearest(name)
			nietz.usage(
				`no council persona is called "{name}"`,
				(if near then `did you mean "{near}"? ` else "") .. `Here are: {table.concat(names, ", ")}`
			)
		elseif persona ~= nil then
			local twice = false
			for _, other in found do
				twice = twice or other.slug == persona.slug
			end
			if not twice then
				table.insert(found, persona)
			end
		end
	end
	if #found == 0 then
		nietz.usage("--personas names nobody", 'such as --personas "Senior Architect, QA Engineer"')
	elseif #found == 1 and table.find(found[1].tags, "contrarian") ~= nil then
		nietz.usage(`--personas names {found[1].name} alone, who is always there`, "name somebody to disagree with")
	end
	return found
end

--- Returns the models of `--models`, in order, by their full names; none without it.
function options.seat_models(wish: string?): { string }
	local found: { string } = {}
	for _, part in text.split(wish or "", ",") do
		local name = text.trim(part)
		if name ~= "" then
			table.insert(found, llm.model(name))
		end
	end
	if wish ~= nil and #found == 0 then
		nietz.usage("--models names no model", "such as --models openai/a,anthropic/b")
	end
	return found
end

--- Returns what `--context` gave: facts, and files with their lines numbered. Raises where a mind has no room for it.
function options.context(given: { string }?, origins: { nietz.Origin }?, is_small: boolean): ({ string }, { cited.Excerpt })
	local facts: { string }, files: { cited.Excerpt } = {}, {}
	local letters, tokens = 0, 0
	for index, value in given or {} :: { string } do
		local origin = (origins or {})[index]
		letters += utf8.len(value) or #value
		tokens += llm.count(value)
		if origin ~= nil and origin.kind == "file" then
			local lines: { string } = {}
			for number, line in text.lines(value) do
				table.insert(lines, `{number}\t{line}`)
			end
			table.insert(files, {
				path = origin.name or "file",
				text = table.concat(lines, "\n"),
				first = 1,
				last = #lines,
				lines = #lines,
				sha256 = text.sha256(value),
			})
		else
			table.insert(facts, value)
		end
	end
	local room = mind.room(0.4, 40_000)
	if is_small and letters > SMALL_CONTEXT then
		nietz.usage(`--context is longer than {SMALL_CONTEXT} letters, which is all that a small model can hold`, "say it shorter")
	elseif not is_small and tokens > room then
		nietz.usage(`--context has about {tokens} tokens, and there is room for {room}`, "give less of it, or a model with a larger window")
	end
	return facts, files
end

--- Returns whether members may look into the project.
function options.may_look(wish: string, given: boolean): boolean
	return wish == "always" or (wish == "auto" and given)
end

--- Raises where a text is longer than a session can hold.
function options.require_length(what: string, value: string?, most: number)
	if value ~= nil and (utf8.len(value) or #value) > most then
		nietz.usage(`{what} is longer than {most} letters`, "say it shorter")
	end
end

return options
