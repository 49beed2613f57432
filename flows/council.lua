--!strict
--- Council: asks what it must know, lets personas with different views argue in the open, and gives one decision with its
--- trade-offs, its assumptions and who disagreed. This is the entry; the modules are in `council/`.

local answer = require("./council/answer")
local app = require("./council/app")
local clarify = require("./council/clarify")
local clock = require("@nietz/clock")
local control = require("./council/control")
local debate = require("./council/debate")
local dialogue = require("./council/dialogue")
local failure = require("./common/failure")
local files = require("./council/files")
local json = require("@nietz/json")
local members = require("./council/members")
local nietz = require("@nietz")
local options = require("./council/options")
local personas = require("@nietz/personas")
local random = require("@nietz/random")
local report = require("./council/report")
local rules = require("./council/rules")
local selection = require("./council/selection")
local session = require("./council/session")
local text = require("@nietz/text")
local ui = require("@nietz/ui")

local function begin(ctx: nietz.Context, request: string): app.App
	local moderator = members.moderator()
	local limit = options.debate_limit(ctx.params, ctx.settings)
	local metadata: { [string]: any } = { correlationId = ctx.run }
	if limit.cycles ~= (if limit.extended then rules.EXTENDED else rules.CYCLES) then
		metadata.debateCycleLimit = limit.cycles
	end
	local doc = session.new({
		kind = "begun",
		at = clock.now(),
		sessionId = random.uuid(),
		userId = "local-user",
		requestText = request,
		extended = limit.extended,
		metadata = metadata,
		participants = json.array({
			{ participantId = random.uuid(), type = "user", name = "User" },
			app.new_participant(moderator),
		}),
	})
	return {
		doc = doc,
		params = ctx.params,
		limit = limit,
		lang = ctx.lang,
		moderator = moderator,
		seats = {},
		points = {},
		remarks = {},
		tokens = {},
	}
end

--- Shows the answer, and makes it anew as long as the user wants to answer questions that were skipped.
local function conclude(self: app.App)
	while true do
		answer.propose(self)
		app.record_event(self, "status", { status = "final" })
		answer.show(self)
		local count = #clarify.skipped_questions(self)
		if count == 0 or not self.params.pause then
			break
		end
		local prompt =
			`{count} question{if count == 1 then " was" else "s were"} skipped. *Enter* takes the answer as it is · \`revisit\` asks again and answers anew · \`cancel\``
		local line = dialogue.ask("final", "final", prompt, {})
		while line.kind == "text" or line.kind == "address" do
			ui.say("The debate is over: type `revisit`, or Enter.")
			line = dialogue.ask("final", "final", prompt, {})
		end
		if line.kind == "empty" or (line :: any).name == "done" then
			break
		end
		clarify.revisit(self)
		app.record_event(self, "status", { status = "debating" })
	end
	answer.finalize(self)
	if self.params.control then
		control.run(self)
	end
end

local function converse(self: app.App, named: { personas.Persona }?)
	clarify.run(self)
	selection.run(self, named)
	debate.run(self)
	conclude(self)
end

local function run(ctx: nietz.Context): any
	local params = ctx.params
	local named = options.named_personas(params.personas)
	options.debate_limit(params, ctx.settings)
	if params.save then
		files.require_unused(params.save)
	end
	local request = text.trim(params.request or "")
	if request == "" then
		request = text.trim((ui.ask({ id = "request", prompt = "What shall the council decide?" })))
	end
	if request == "" then
		nietz.usage("there is nothing to decide", 'nietz run council "Should we split billing into its own service?"')
	end
	options.require_length("the request", request, 5000)
	options.require_length("--context", params.context, 2000)
	local self = begin(ctx, request)
	local ok, err: any = pcall(converse, self, named)
	if not ok and not failure.is(err, app.CANCELLED) then
		error(err, 0)
	elseif not ok and self.doc.status == "completed" then
		ui.say("The answer stands; whether the council was worth it was not found out.")
	elseif not ok then
		app.record_event(self, "status", { status = "cancelled" })
		ui.say("**Cancelled.** What was said is kept in the run.")
	end
	if params.save then
		files.save(params.save, self.doc)
	else
		files.require_valid(self.doc)
		ui.say(`To keep it in a file: \`nietz run council export {ctx.run} decision.yaml\``)
	end
	return self.doc
end

return nietz.flow({
	name = "council",
	host_api = 2,
	summary = "Lets personas with different views argue in the open, and decides with dissent on the record",
	params = options.PARAMS,
	settings = options.SETTINGS,
	permissions = { llm = true },
	budget = { calls = 2000 },
	collections = files.COLLECTIONS,
	personas = { council = "./council/member.schema.json" },
	commands = {
		export = {
			summary = "Writes the session of a run to a file, .json or .yaml",
			params = {
				run = { type = "run", positional = true, required = true, order = 1, help = "The run, as `nietz runs` lists it" },
				file = { type = "string", positional = true, required = true, order = 2, help = "The file, .json or .yaml" },
			} :: any,
			run = function(ctx: nietz.Context): any
				files.require_unused(ctx.params.file)
				files.save(ctx.params.file, ctx.params.run.result)
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
	},
	report = report.blocks,
	run = run,
})
