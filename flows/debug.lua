--!strict
--- Debug: questions a developer until they find the root cause themselves, remembers how they reasoned, and shows over
--- many sessions whether they get better at it. This is the entry; the modules are in `debug/`.

local app = require("./debug/app")
local clock = require("@nietz/clock")
local converse = require("./debug/converse")
local ending = require("./debug/ending")
local evidence = require("./debug/evidence")
local git = require("@nietz/git")
local intensity = require("./debug/intensity")
local judge = require("./debug/judge")
local lang = require("./debug/lang")
local migrations = require("./debug/migrations")
local models = require("./debug/models")
local nietz = require("@nietz")
local profile_command = require("./debug/profile_command")
local question = require("./debug/question")
local random = require("@nietz/random")
local recall = require("./common/memory/recall")
local records = require("./debug/records")
local report_blocks = require("./debug/report_blocks")
local rules = require("./debug/rules")
local run_checks = require("./debug/run_checks")
local session = require("./debug/session")
local text = require("@nietz/text")
local translations = require("./common/translations")
local ui = require("@nietz/ui")
local verifier = require("./debug/verifier")

local function ask_problem(ctx: nietz.Context, t: translations.Translate): evidence.Problem
	local given = evidence.problem(ctx) or { description = text.trim((ui.ask({ id = "problem", prompt = t("problem.ask") }))) }
	if given.description == "" then
		nietz.usage(t("problem.empty"), t("problem.hint"))
	end
	return given
end

--- Shows what the debug memory knows of failures like this one: as questions, which give nothing away.
local function show_memory(description: string, code: string, t: translations.Translate)
	recall.set_language(code)
	local questions = recall.for_person(recall.find_described(description), code)
	if #questions > 0 then
		ui.say(`{t("memory")}\n\n- {table.concat(questions, "\n- ")}`)
	end
end

local function run(ctx: nietz.Context)
	local params = ctx.params
	local code = lang.code(ctx.lang)
	local t = lang.translator(code)
	local problem = ask_problem(ctx, t)
	if params.verify ~= nil or params.run ~= nil or params.diff ~= nil then
		-- Fails where there is no repository: better now than after an hour.
		git.head()
	end
	local voices = intensity.voices()
	local voice = intensity.find(params.voice or params.intensity, voices)
	for _, other in { voice, table.unpack(voices) } do
		-- Any of these personas may be one of the user's own. What is wrong with it is said before any model call.
		question.own_questions(other, code)
	end
	local doc = session.new(random.uuid(), clock.now(), problem.description, intensity.nearest(voice))
	session.note_voice(doc, voice.slug)
	local self = app.new(doc, ctx.run, code, params, voice.slug)
	app.save(self)
	ui.say(t("begin", { name = voice.name }))
	if params.verifier and not verifier.is_available(true, params.verifier_model) then
		ui.say(t("no_verifier"))
	end
	if params.memory then
		show_memory(problem.description, code, t)
	end
	evidence.take_given(self, ctx, problem)
	-- Turns are saved as they come. A failure is not handled here, because resuming a run tries again what ended it.
	return ending.finish(self, converse.run(self))
end

return nietz.flow({
	name = "debug",
	host_api = 2,
	summary = "Questions you until you find the root cause yourself, and shows how your debugging grows",
	params = {
		problem = {
			type = "string",
			positional = true,
			order = 1,
			help = "What goes wrong, in your words; files that you name are read, @FILE or @FILE:12-40 is shown whole; - is what comes by a pipe",
		},
		diff = {
			type = "revision",
			alone = "HEAD",
			help = "Show how the files differ from this revision; without one from HEAD, which is what is not committed",
		},
		run = { type = "string", help = "A command that shows the problem, run in a sandbox; its output is shown, and again by /again" },
		intensity = {
			type = "string",
			short = "i",
			default = "nietzsche",
			help = "Who asks, from the mildest to the hardest: socrates, nietzsche, zarathustra, or any persona",
		},
		voice = { type = "persona", help = "Any persona asks, in place of these" },
		verify = {
			type = "string",
			help = "A command that shows whether the fix holds, run in a sandbox at the start and when you say that it is solved",
		},
		verify_seconds = { type = "number", default = 600, min = 1, help = "How long each of these commands may take" },
		verifier = { type = "boolean", default = true, help = "Check replies by the rules alone, without a second model call" },
		verifier_model = { type = "string", help = "The model that reads replies for leaks [default: the run's, unless it is a local one]" },
		question_model = models.PARAMS.question_model,
		first_model = models.PARAMS.first_model,
		tags_model = models.PARAMS.tags_model,
		score_model = models.PARAMS.score_model,
		memory = { type = "boolean", default = true, help = "Do not ask what earlier debugging sessions (debug-memory) knew" },
		context = {
			type = "integer",
			min = 2000,
			help = "How many tokens the model takes in one call [default: what is known of it, else 32768]",
		},
	},
	attachments = "piped",
	permissions = { llm = true, files = true, git = true, exec = { "{run}", "{verify}" } },
	budget = { calls = 1000 },
	personas = { intensity = "./debug/voice.schema.json", ["*"] = "./debug/any_voice.schema.json" },
	collections = {
		sessions = {
			path = ".nietzschian/sessions/{id}.json",
			schema = "./debug/session.schema.json",
			keys = { id = "/id" },
			version = {
				field = "/schemaVersion",
				current = 1,
				migrations = migrations.all,
				read_newer = true,
				own = { field = "/nietz/version", current = session.OWN_VERSION, formerly = migrations.FORMERLY },
			},
			rules = rules.check,
			everywhere = true,
			shared = true,
			expects = {
				{ ordered = { "/timestamp", "/endTimestamp" } },
				{ ordered = { "/timestamp", "/transcript/*/timestamp" } },
				{ numbered = "/transcript/*/turnNumber" },
				{ rising = "/transcript/*/timestamp" },
			} :: { nietz.Expectation },
		},
		debug_memory = recall.collections.debug_memory,
		debug_memory_archive = recall.collections.debug_memory_archive,
	},
	commands = {
		list = records.ALL.list,
		show = records.ALL.show,
		export = records.ALL.export,
		profile = profile_command.COMMAND,
		judge = {
			summary = "Judges replies in a file by the rules and the verifier, to measure a change of either",
			params = judge.PARAMS,
			run = judge.run,
		},
	},
	report = report_blocks.of,
	checks = run_checks.ALL,
	compared = run_checks.compared,
	run = run,
})
