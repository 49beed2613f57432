--!strict
--- What the command line offers, and what follows from it: how long a session may be, and what it leaves out.

local files = require("@nietz/files")
local nietz = require("@nietz")
local session = require("./session")

local options = {}

--- What a session may do.
export type Options = {
	--- The most iterations.
	iterations: number,
	--- The minutes after which the user is asked whether to stop.
	minutes: number,
	--- The most questions in one iteration.
	questions: number,
	--- `auto`, `random` or `progressive`: how techniques are chosen.
	choosing: string,
	--- `feature`, `problem` or `decision`, or nil.
	template: string?,
	--- Enter and `ok` take the first suggestion.
	turbo: boolean,
	--- Show bars, advice and energy checks.
	chart: boolean,
	energy: boolean,
	suggest: boolean,
	technique: boolean,
	hmw: boolean,
	security: boolean,
	plan: boolean,
	--- Compare with what is used today; name what must be looked up; think in written steps.
	competitive: boolean,
	quotes: boolean,
	lookups: boolean,
	steps: boolean,
	--- `never`, `always` or `needed`: say the topic in other words first.
	clarify: string,
	--- The EMS from which finishing is proposed.
	checkpoint: number,
	--- One model call for several answers.
	light: boolean,
	--- Begin with many ideas, before any question.
	diverge: boolean,
	--- `prd`, `rfc`, `adr` or `issue`: the form of the brief; or the text of a template of the user's own.
	format: string,
	form_text: string?,
}

local function flag(help: string): nietz.Param
	return { type = "boolean", default = false, help = help }
end

--- The manifest's `params`.
options.PARAMS = {
	topic = { type = "string", positional = true, help = "What to think about" },
	["continue"] = { type = "string", help = "Resume the session with this slug" },
	name = { type = "string", help = "The session's name, instead of one made from the topic" },
	persona = { type = "string", help = "Who leads: architecte, maieuticien, pragmatique, sparring or one of your own" },
	template = {
		type = "string",
		help = "What kind of subject it is: feature, problem or decision; or FILE, a minijinja template for the brief",
	},
	format = { type = "string", choices = { "prd", "rfc", "adr", "issue" }, default = "prd", help = "The form of the brief" },
	about = {
		type = "string",
		many = true,
		help = "A file or folder of the project that models may read; may be given several times",
	},
	lite = flag("A light session: one question at a time, no bars, no checks"),
	quick = flag("At most 3 iterations"),
	turbo = flag("At most 3 iterations; `ok` takes all suggestions"),
	diverge = flag("Begin with many ideas in your own words, technique by technique, before anything is judged"),
	random = flag("Use techniques by chance"),
	progressive = flag("Use techniques by how far the session is"),
	party = flag("Begin with a discussion of several roles"),
	panel = flag("Begin with a panel of experts"),
	competitive = flag("Begin with what people do about this today, and where that fails"),
	c7 = flag("Name in the brief what must be looked up in documentation"),
	seq = flag("Let the model think in written steps first: slower, and better"),
	["force-clarify"] = flag("Always say the topic in other words first"),
	["no-clarify"] = flag("Never say the topic in other words first"),
	["no-hmw"] = flag('No "how might we" questions'),
	["no-plan"] = flag("No plan in the brief"),
	["no-security"] = flag("No security check before the brief"),
	["no-suggest"] = flag("No advice, no energy checks"),
	["no-technique"] = flag("No techniques unless asked for"),
} :: { [string]: nietz.Param }

local EXCLUSIVE = {
	{ "continue", "topic" },
	{ "continue", "name" },
	{ "party", "panel" },
	{ "random", "progressive" },
	{ "force-clarify", "no-clarify" },
	{ "lite", "turbo" },
}

local KINDS = { "feature", "problem", "decision" }

--- Returns the kind of subject, and the text of a template for the brief, that `--template` names.
local function read_template(wish: string?): (string?, string?)
	if wish == nil or table.find(KINDS, wish) ~= nil then
		return wish, nil
	end
	local ok, file = pcall(files.read, wish)
	if not ok or file == nil then
		nietz.usage(`--template: there is no file {wish}`, "give feature, problem or decision, or the path of a template")
	end
	return nil, (file :: any).text
end

local function describe_param(param: string): string
	return if options.PARAMS[param].positional then "a " .. param else "--" .. param
end

--- Returns what these parameters allow; raises where two of them contradict each other.
function options.from_params(params: { [string]: any }): Options
	for _, pair in EXCLUSIVE do
		if params[pair[1]] and params[pair[2]] then
			local first, second = describe_param(pair[1]), describe_param(pair[2])
			nietz.usage(`{first} and {second} exclude each other`, "give one of them")
		end
	end
	local lite, turbo, quick = params.lite == true, params.turbo == true, params.quick == true
	local light = lite or turbo or quick
	local suggest = not (params["no-suggest"] or light)
	local kind, form = read_template(params.template)
	local clarify = "needed"
	if params["force-clarify"] then
		clarify = "always"
	elseif params["no-clarify"] or lite or turbo then
		clarify = "never"
	end
	return {
		iterations = if turbo or quick then 3 else 10,
		minutes = 120,
		questions = if lite then 1 else 3,
		choosing = if params.random then "random" elseif params.progressive then "progressive" else "auto",
		template = kind,
		light = lite or (quick and not turbo),
		diverge = params.diverge == true,
		format = params.format or "prd",
		form_text = form,
		turbo = turbo,
		chart = not lite,
		energy = suggest,
		suggest = suggest,
		technique = not params["no-technique"] and (not light or params.random or params.progressive),
		hmw = not (params["no-hmw"] or light),
		security = not (params["no-security"] or light),
		plan = not params["no-plan"],
		quotes = not light,
		competitive = params.competitive == true,
		lookups = params.c7 == true,
		steps = params.seq == true,
		clarify = clarify,
		checkpoint = if turbo then 60 else 70,
	}
end

--- Keeps in the session what holds for later sittings, too, and takes over what an earlier sitting chose.
function options.carry_over(allowed: Options, doc: session.Doc)
	local s, state = doc.session, doc.nietz
	allowed.template = allowed.template or state.template
	state.template = allowed.template
	if allowed.choosing == "auto" and s.random_state ~= nil then
		allowed.choosing = "random"
	elseif allowed.choosing == "auto" and s.progressive_state ~= nil then
		allowed.choosing = "progressive"
	end
	if allowed.choosing == "random" then
		s.random_state = s.random_state or { category_counts = {} }
		s.progressive_state = nil
	elseif allowed.choosing == "progressive" then
		s.progressive_state = s.progressive_state or { divergent_completed = false, transition_completed = false }
		s.random_state = nil
	end
end

return options
