--!strict
--- Council: asks what it must know, lets personas with different views argue in the open, and gives one decision with its
--- trade-offs, its assumptions and who disagreed. This is the entry; the modules are in `council/`.

local answer = require("./council/answer")
local app = require("./council/app")
local cited = require("./common/cited")
local clarify = require("./council/clarify")
local clock = require("@nietz/clock")
local control = require("./council/control")
local conversation = require("./council/conversation")
local debate = require("./council/debate")
local dialogue = require("./council/dialogue")
local failure = require("./common/failure")
local files = require("./council/files")
local interjections = require("./council/interjections")
local json = require("@nietz/json")
local lang = require("./council/lang")
local ledger = require("./common/ledger")
local members = require("./council/members")
local nietz = require("@nietz")
local options = require("./council/options")
local personas = require("@nietz/personas")
local plain = require("./council/plain")
local random = require("@nietz/random")
local report = require("./council/report")
local rules = require("./council/rules")
local run_checks = require("./council/run_checks")
local seat = require("./council/seat")
local selection = require("./council/selection")
local session = require("./council/session")
local text = require("@nietz/text")
local translations = require("./common/translations")
local ui = require("@nietz/ui")
local worth = require("./council/worth")

--- What a run of this flow switches on, for its record.
local FLAGS = { "control", "extended", "models" }

local function begin(ctx: nietz.Context, request: string): app.App
	local moderator = members.moderator()
	local limit = options.debate_limit(ctx.params, ctx.settings)
	local flags: { string } = json.array({} :: { string })
	for _, flag in FLAGS do
		if ctx.params[flag] then
			table.insert(flags, flag)
		end
	end
	local metadata: nietz.Values = { correlationId = ctx.run, featureFlags = flags }
	if limit.cycles ~= (if limit.extended then rules.EXTENDED else rules.CYCLES) then
		metadata.debateCycleLimit = limit.cycles
	end
	local self: app.App = {
		doc = {} :: never,
		params = ctx.params,
		limit = limit,
		lang = ctx.lang,
		t = lang.translator(lang.code(ctx.lang)),
		moderator = moderator,
		seats = {},
		models = {},
		points = {},
		book = ledger.new(),
		files = {},
		looking = false,
		shown = {},
		cited = {},
		conversation = {},
		spent = {},
		looked_until = 0,
	}
	local facts, given = options.context(ctx.params.context, ctx.origins.context, app.is_small(self, moderator))
	self.files = given
	self.looking = options.may_look(ctx.params.look, #given > 0)
	if self.looking then
		table.insert(flags, "look")
	end
	self.doc = session.new({
		kind = "begun",
		at = clock.now(),
		sessionId = random.uuid(),
		userId = "local-user",
		requestText = request,
		extended = limit.extended,
		metadata = metadata,
		files = cited.record(given),
		participants = json.array({
			{ participantId = random.uuid(), type = "user", name = "User", isPrimaryUser = true, isRelevantForRequest = true },
			app.new_participant(moderator, false) :: any,
		}),
	})
	for _, words in facts do
		app.hear(self, "context", words)
	end
	conversation.tell_case(self)
	return self
end

--- Asks what becomes of the answer. Returns `done`, or what makes it anew.
local function ask_end(self: app.App): string
	local skipped = #clarify.skipped_questions(self)
	local composed = self.doc.metadata.decision.composed == true
	local more = if skipped > 0 then translations.counted(self.t, "final.skipped", skipped) else ""
	more ..= if composed then self.t("final.again") else ""
	local without = { if skipped == 0 then "revisit" else "", if composed then "" else "again" }
	local prompt = `{self.t("final.prompt", { more = more })}\n\n{self.t("final.ask")}`
	while true do
		local line = dialogue.ask(self.t, "final", "final", prompt, {}, nil, without)
		if line.kind == "empty" then
			return "done"
		elseif line.kind == "command" and line.name == "fact" then
			interjections.tell_all(self, "fact", line.text)
			return "debate"
		elseif line.kind == "command" and line.name == "facts" then
			interjections.show_facts(self)
		elseif line.kind == "command" and line.name == "strike" then
			if interjections.strike(self, line.text) then
				return "debate"
			end
		elseif line.kind == "command" then
			return line.name or ""
		else
			ui.say(self.t("final.over"))
		end
	end
end

--- Shows the answer, and makes it anew as long as the user has more to say.
local function conclude(self: app.App)
	while true do
		answer.propose(self)
		answer.show(self)
		local next = if self.params.pause then ask_end(self) else "done"
		if next == "done" then
			break
		elseif next == "revisit" then
			clarify.revisit(self)
		end
		app.record_event(self, "reopened", {})
		if next ~= "again" then
			debate.one_more(self)
		end
	end
	answer.finalize(self)
end

local function converse(self: app.App, named: { personas.Persona }?)
	clarify.run(self)
	if self.params.pause then
		interjections.before(self)
	end
	selection.run(self, named)
	debate.run(self)
	conclude(self)
end

--- Writes the session where the user said so, or says how to.
local function keep(self: app.App, run: string)
	if self.params.save then
		files.save(self.params.save, self.doc, self.lang)
	else
		files.require_valid(self.doc)
		ui.say(self.t("keep", { run = run }))
	end
end

local function run(ctx: nietz.Context): any
	local params = ctx.params
	local named = options.named_personas(params.personas)
	options.debate_limit(params, ctx.settings)
	options.seat_models(params.models)
	if params.save then
		files.require_unused(params.save)
	end
	local t = lang.translator(lang.code(ctx.lang))
	local request = text.trim(params.request or "")
	if request == "" then
		request = text.trim((ui.ask({ id = "request", prompt = t("request.prompt") })))
	end
	if request == "" then
		nietz.usage("there is nothing to decide", 'nietz run council "Should we split billing into its own service?"')
	end
	options.require_length("the request", request, 5000)
	local self = begin(ctx, request)
	local instead: string? = nil
	local ok, err: any = pcall(function()
		instead = plain.instead(self)
		if instead == nil then
			converse(self, named)
		end
	end)
	if instead ~= nil then
		return { plain = instead }
	elseif not ok and not failure.is(err, app.CANCELLED) then
		error(err, 0)
	elseif not ok then
		app.record_event(self, "status", { status = "cancelled" })
		ui.say(t("cancelled"))
	elseif params.control then
		control.run(self)
	end
	keep(self, ctx.run)
	return self.doc
end

return nietz.flow({
	name = "council",
	host_api = 2,
	summary = "Lets personas with different views argue in the open, and decides with dissent on the record",
	params = options.PARAMS,
	settings = options.SETTINGS,
	permissions = { llm = true, files = true },
	limits = { megabytes = 256, seconds = 10 },
	budget = { calls = 2000 },
	collections = files.COLLECTIONS,
	personas = { council = "./council/member.schema.json" },
	commands = {
		export = {
			summary = "Writes the session of a run to a file, .json or .yaml, or its decision, .md",
			params = {
				run = { type = "run", positional = true, required = true, order = 1, help = "The run, as `nietz runs` lists it" },
				file = { type = "string", positional = true, required = true, order = 2, help = "The file, .json, .yaml or .md" },
			} :: any,
			run = function(ctx: nietz.Context): any
				files.require_unused(ctx.params.file)
				files.save(ctx.params.file, ctx.params.run.result, ctx.lang)
				return nil
			end,
		},
		personas = {
			summary = "Lists who can sit in a council",
			reads_only = true,
			run = function(): any
				local lines: { string } = {}
				for _, persona in members.debaters() do
					table.insert(lines, `- **{persona.name}** {persona.summary}`)
				end
				ui.say(table.concat(lines, "\n"))
				return nil
			end,
		},
		seat = {
			summary = "Speaks once for one member, in a run of its own: what --spread begins",
			params = seat.PARAMS,
			internal = true,
			run = seat.run,
		},
		worth = {
			summary = "Sums up whether councils of this workspace were worth it, by what --control found",
			reads_only = true,
			run = function(ctx: nietz.Context): any
				worth.show(lang.translator(lang.code(ctx.lang)))
				return nil
			end,
		},
	},
	report = report.blocks,
	checks = run_checks.ALL,
	compared = run_checks.compared,
	run = run,
})
