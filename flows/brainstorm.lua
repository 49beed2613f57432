--!strict
--- Brainstorm: few and sharp questions, a score that has to be earned, and in the end a brief that somebody can build
--- from. This is the entry; the modules are in `brainstorm/`, and every text that a user or a model reads is a file there.

local actions = require("./brainstorm/actions")
local app = require("./brainstorm/app")
local brief = require("./brainstorm/brief")
local checkpoints = require("./brainstorm/checkpoints")
local clarify = require("./brainstorm/clarify")
local clock = require("@nietz/clock")
local documents = require("@nietz/documents")
local discussion = require("./brainstorm/discussion")
local farewell = require("./brainstorm/farewell")
local ideation = require("./brainstorm/ideation")
local iterate = require("./brainstorm/iterate")
local lang = require("./brainstorm/lang")
local leader = require("./brainstorm/leader")
local launch = require("./brainstorm/launch")
local migrations = require("./brainstorm/migrations")
local mind = require("./common/mind")
local nietz = require("@nietz")
local options = require("./brainstorm/options")
local outside_facts = require("./brainstorm/outside_facts")
local panel = require("./brainstorm/panel")
local party = require("./brainstorm/party")
local project = require("./brainstorm/project")
local report = require("./brainstorm/report")
local rules = require("./brainstorm/rules")
local session = require("./brainstorm/session")
local statistics = require("./brainstorm/statistics")
local ui = require("@nietz/ui")

--- Leaves the session as it is, or closes it, and returns the run's result.
local function leave(self: app.App, how: string): any
	local s = self.doc.session
	if how == "abandon" then
		s.status = "abandoned"
		local path = app.save(self)
		ui.say(self.t("end.abandoned", { path = `\`{path}\``, days = launch.DAYS }))
		farewell.say(self, "defeat")
		return { status = s.status, ems = s.ems, session = path }
	end
	local path = app.save(self)
	ui.say(self.t("end.paused", { path = `\`{path}\`` }))
	ui.say(self.t("save.resume", { command = `\`{app.resume_command(self)}\`` }))
	return { status = s.status, ems = s.ems, session = path }
end

--- Where a party or a panel is active, runs its round before a new iteration.
local function hold_discussion(self: app.App): app.Signal?
	local s = self.doc.session
	local state = self.doc.nietz
	if not (s.party_active or s.panel_active) or state.heard == s.iteration or not session.is_between_iterations(self.doc) then
		return nil
	end
	state.heard = s.iteration
	local signal = if s.party_active then party.run_round(self) else panel.run_round(self, panel.next_phase(self.doc))
	-- `continue` as the answer to a round only ends the round.
	return if signal and (signal.go == "next" or signal.go == "again") then nil else signal
end

--- Runs iterations until the session ends, and returns the run's result.
local function converse(self: app.App, fresh: boolean): any
	local signal = if fresh then clarify.run(self) else nil
	if fresh and signal == nil and self.options.competitive then
		outside_facts.list_rivals(self)
	end
	if fresh and signal == nil and self.options.diverge then
		local led = ideation.diverge(self)
		signal = if led ~= nil and (led.go == "next" or led.go == "again") then nil else led
	end
	while true do
		if signal == nil then
			signal = hold_discussion(self) or iterate.run(self) or checkpoints.after_iteration(self)
		elseif signal.go == "finish" then
			local result = brief.finish(self)
			if result ~= nil then
				return result
			end
			signal = nil
		elseif signal.go == "quit" or signal.go == "abandon" then
			return leave(self, signal.go)
		else
			-- Back or forward: the session is in another iteration now, and goes on there.
			signal = nil
		end
	end
end

local function run(ctx: nietz.Context): any
	local code = lang.code(ctx.lang)
	local t = lang.translator(code)
	local allowed = options.from_params(ctx.params)
	local doc, fresh = launch.open(t, ctx.params)
	local s = doc.session
	options.carry_over(allowed, doc)
	local self: app.App = {
		doc = doc,
		t = t,
		lang = code,
		mind = mind.of(),
		reading = project.read(t, doc, ctx.params.about, fresh),
		options = allowed,
		last_saved = clock.now(),
		run_command = actions.run,
		ask_voice = discussion.ask_voice,
		focus = nil,
		techniques = {},
		weak_point = nil,
		next_speaker = nil,
		saved_in = documents.collection("sessions"),
		drafted = nil,
	}
	if ctx.params.party or ctx.params.panel then
		s.mode, s.party_active, s.panel_active = if ctx.params.party then "party" else "panel", ctx.params.party, ctx.params.panel
	end
	app.save(self)
	if fresh then
		local how = t(if allowed.turbo then "ask.turbo" else "ask.skip")
		ui.say(t("launch.started", { topic = doc.nietz.topic, slug = s.slug, persona = leader.name(self, app.leader(self)), how = how }))
	end
	return converse(self, fresh)
end

local text_document = { type = "string", minLength = 1 }

local version = {
	field = "/format_version",
	current = "1.2",
	migrations = migrations.all,
	-- Without a version, only a file of 1.0 with its version inside is an older one.
	formerly = { "/session/format_version" },
	own = { field = "/nietz/version", current = session.OWN_VERSION, formerly = migrations.FORMERLY },
}

local session_expects = {
	-- Ideas that were struck leave a gap.
	{ rising = "/session/ideas/*/id" },
	{ numbered = "/session/history/*/iteration" },
	{ numbered = "/session/party_history/*/round" },
	{ numbered = "/session/panel_history/*/round" },
	{ rising = "/session/history/*/timestamp" },
	{ ordered = { "/session/created", "/session/updated" } },
	{ ordered = { "/session/started_at", "/session/updated" } },
	{ ordered = { "/session/started_at", "/session/history/*/timestamp" } },
} :: { any }

return nietz.flow({
	name = "brainstorm",
	host_api = 2,
	summary = "Thinks an idea through with you, until somebody could build it",
	params = options.PARAMS,
	permissions = { llm = true, files = true },
	limits = { megabytes = 256, seconds = 10 },
	budget = { calls = 3000 },
	personas = { facilitator = "./brainstorm/facilitator.schema.json", panel = "./brainstorm/expert.schema.json" },
	collections = {
		sessions = {
			path = ".project-memory/brainstorm-sessions/{slug}.yaml",
			schema = "./brainstorm/session.schema.json",
			keys = { slug = "/session/slug" },
			version = version,
			rules = rules.check,
			expects = session_expects,
		},
		rescued = {
			path = "brainstorm-{slug}.yaml",
			schema = "./brainstorm/session.schema.json",
			keys = { slug = "/session/slug" },
			version = version,
			rules = rules.check,
			expects = session_expects,
		},
		finished = {
			path = ".project-memory/brainstorm-history.jsonl",
			schema = "./brainstorm/finished.schema.json",
			expects = { { rising = "/finished_at" } },
		},
		statistics = { path = ".project-memory/brainstorm-stats.json", schema = "./brainstorm/statistics.schema.json" },
		briefs = { path = "docs/briefs/{slug}/brief-{date}.md", format = "text", schema = text_document } :: any,
		journals = { path = "docs/briefs/{slug}/journal-{date}.md", format = "text", schema = text_document } :: any,
	},
	commands = {
		sessions = {
			summary = "Lists the saved sessions",
			reads_only = true,
			run = function(ctx: nietz.Context): any
				launch.show_sessions(lang.translator(lang.code(ctx.lang)))
				return nil
			end,
		},
		stats = {
			summary = "Shows what the finished sessions have in common",
			reads_only = true,
			run = function(ctx: nietz.Context): any
				return statistics.show(lang.translator(lang.code(ctx.lang)))
			end,
		},
	},
	report = report.blocks,
	run = run,
})
