--!strict
--- The end of a session: what was said becomes a brief that somebody can build from, each line with the iteration
--- that it came from, and a journal of the session.

local app = require("./app")
local clock = require("@nietz/clock")
local context = require("./context")
local documents = require("@nietz/documents")
local ems = require("./ems")
local explore = require("./explore")
local lang = require("./lang")
local template = require("@nietz/template")
local ui = require("@nietz/ui")
local words = require("./words")

local brief = {}

local briefs = documents.collection("briefs")
local journals = documents.collection("journals")

local EFFORT: { [string]: number } = { S = 1, M = 3, L = 5 }
local RANK: { [string]: number } = { must = 1, should = 2, could = 3 }
local MOST_ANSWERS = 14

--- Returns the size of the work by its must stories: `TINY`, `STANDARD` or `LARGE`. Pure.
function brief.size(stories: { any }): string
	local sum = 0
	for _, story in stories do
		if story.priority == "must" then
			sum += EFFORT[story.effort] or EFFORT.M
		end
	end
	return if sum <= 2 then "TINY" elseif sum <= 5 then "STANDARD" else "LARGE"
end

--- Returns what was said, by iteration: answers, ideas and decisions.
function brief.material(self: app.App): { { iteration: number, text: string } }
	local s = self.doc.session
	local found: { { iteration: number, text: string } } = {}
	for _, entry in s.history do
		for _, pair in context.exchange(entry) do
			table.insert(found, { iteration = entry.iteration, text = pair.answer })
		end
	end
	for _, note in s.flow_state.notes do
		if note.kind == "user" then
			table.insert(found, { iteration = note.iteration, text = note.text })
		end
	end
	return found
end

--- Returns the iteration that a line comes from: the claimed one where it holds, else the one that shares most words
--- with it. A model's claim alone is no trace.
function brief.trace(line: string, claimed: number?, material: { { iteration: number, text: string } }): number
	local best, most = 0, 0
	local claimed_shares = false
	for _, item in material do
		local shared = words.shared(line, item.text)
		claimed_shares = claimed_shares or (item.iteration == claimed and shared > 0)
		if shared > most then
			best, most = item.iteration, shared
		end
	end
	if claimed ~= nil and claimed_shares then
		return claimed
	end
	return best
end

local function bounded(limit: number, least: number?): { [string]: any }
	return { type = "string", minLength = least or 5, maxLength = limit }
end

local function core(self: app.App, answers: { any }): any
	local vars = context.of(self)
	vars.answers = answers
	return app.think(self, {
		prompt = "brief",
		plain = true,
		vars = vars,
		schema = {
			type = "object",
			additionalProperties = false,
			required = { "problem", "users" },
			properties = {
				problem = bounded(600, 20),
				users = { type = "array", maxItems = 4, items = bounded(100, 2) },
			},
		},
	}) or { problem = self.doc.session.flow_state.topic, users = {} }
end

--- Stories without a model: what was decided must be, the best ideas should be.
local function plain_stories(self: app.App): { any }
	local found: { any } = {}
	for _, decision in self.doc.session.flow_state.decisions do
		table.insert(found, { story = decision.text, priority = "must", effort = "M", iteration = decision.iteration })
	end
	for index, idea in context.ideas(self) do
		if index <= 4 then
			table.insert(found, { story = idea.content, priority = "should", effort = "M", iteration = idea.iteration or 0 })
		end
	end
	return found
end

--- Returns the stories, must first.
function brief.stories(self: app.App, problem: string): { any }
	local material = brief.material(self)
	local vars = context.of(self)
	vars.problem = problem
	vars.material = {}
	for _, item in material do
		table.insert(vars.material, { iteration = item.iteration, text = app.line(item.text, 240) })
	end
	local value = app.think(self, {
		prompt = "stories",
		plain = true,
		vars = vars,
		schema = {
			type = "object",
			additionalProperties = false,
			required = { "stories" },
			properties = {
				stories = {
					type = "array",
					minItems = 1,
					maxItems = 6,
					items = {
						type = "object",
						additionalProperties = false,
						required = { "effort", "iteration", "priority", "story" },
						properties = {
							effort = { enum = { "S", "M", "L" } },
							iteration = { type = "integer", minimum = 0, maximum = 99 },
							priority = { enum = { "must", "should", "could" } },
							story = bounded(220, 12),
						},
					},
				},
			},
		},
	})
	if value == nil then
		return plain_stories(self)
	end
	local found: { any } = {}
	local seen: { string } = {}
	for _, story in value.stories do
		local line = app.line(story.story, 240)
		if not words.repeats(line, seen) then
			table.insert(seen, line)
			table.insert(found, {
				story = line,
				priority = story.priority,
				effort = story.effort,
				iteration = brief.trace(line, story.iteration, material),
				rank = RANK[story.priority] * 100 + #found,
			})
		end
	end
	table.sort(found, function(a: any, b: any): boolean
		return a.rank < b.rank
	end)
	return found
end

local function steps(self: app.App, stories: { any }): { any }
	local vars = context.of(self)
	vars.stories = stories
	vars.last = math.max(1, #self.doc.session.history)
	vars.answers = vars.recent
	local value = app.think(self, {
		prompt = "steps",
		plain = true,
		vars = vars,
		schema = {
			type = "object",
			additionalProperties = false,
			required = { "steps" },
			properties = {
				steps = {
					type = "array",
					minItems = 1,
					maxItems = 4,
					items = {
						type = "object",
						additionalProperties = false,
						required = { "iteration", "step" },
						properties = { iteration = { type = "integer", minimum = 0, maximum = 99 }, step = bounded(180, 8) },
					},
				},
			},
		},
	})
	local material = brief.material(self)
	local found: { any } = {}
	for _, step in if value then value.steps else {} do
		local line = app.line(step.step, 200)
		table.insert(found, { step = line, iteration = brief.trace(line, step.iteration, material) })
	end
	return found
end

local function cell(value: string): string
	return (string.gsub(value, "|", "\\|"))
end

--- Returns all that the brief says. What was drafted for a preview is not paid for again while nothing was added.
function brief.draft(self: app.App): any
	local s = self.doc.session
	local state = s.flow_state
	local stamp = `{#s.history}/{#state.notes}/{#state.decisions}/{state.scored or 0}`
	local drafted = (self :: any).drafted
	if drafted ~= nil and drafted.stamp == stamp then
		return drafted.value
	end
	local answers: { any } = {}
	for _, entry in s.history do
		for _, pair in context.exchange(entry) do
			table.insert(answers, pair)
		end
	end
	while #answers > MOST_ANSWERS do
		table.remove(answers, 1)
	end
	local heart = core(self, answers)
	local problem = app.line(heart.problem, 700)
	local stories = brief.stories(self, problem)
	local next_steps = if self.switches.plan then steps(self, stories) else {}
	if #state.risks == 0 then
		explore.risks(self)
	end
	if self.switches.security and explore.touches_security(self) then
		explore.security(self)
	end
	local value = { problem = problem, users = heart.users, stories = stories, steps = next_steps }
	local new_stamp = `{#s.history}/{#state.notes}/{#state.decisions}/{state.scored or 0}`;
	(self :: any).drafted = { stamp = new_stamp, value = value }
	return value
end

--- Returns the brief as Markdown.
function brief.text(self: app.App, draft: any): string
	local s = self.doc.session
	local state = s.flow_state
	local stories, kept_ideas, risks = {}, {}, {}
	local told: { string } = {}
	for _, story in draft.stories do
		table.insert(told, story.story)
		table.insert(stories, { story = cell(story.story), priority = story.priority, effort = story.effort, iteration = story.iteration })
	end
	for _, idea in context.ideas(self) do
		if not words.repeats(idea.content, told) then
			table.insert(kept_ideas, { content = idea.content, score = idea.score, iteration = idea.iteration or 0 })
		end
	end
	for _, risk in state.risks do
		table.insert(risks, {
			risk = cell(risk.risk),
			mitigation = cell(risk.mitigation),
			weight = risk.probability * risk.impact,
			high = risk.probability * risk.impact >= explore.MITIGATE,
			iteration = risk.iteration,
		})
	end
	local findings: { any } = {}
	for _, note in state.notes do
		if note.kind == "security" or note.kind == "spike" then
			table.insert(findings, note)
		end
	end
	return template.render("./screens/brief.md", {
		findings = findings,
		l = lang.data(self.lang, "brief"),
		s = { slug = s.slug, id = s.id, ems = s.ems, iterations = #s.history, minutes = s.duration_minutes },
		topic = state.topic,
		level = self.t(`levels.{ems.level(s.ems)}`),
		problem = draft.problem,
		users = draft.users,
		stories = stories,
		size = brief.size(draft.stories),
		steps = draft.steps,
		decisions = state.decisions,
		risks = risks,
		ideas = kept_ideas,
		date = string.sub(clock.now(), 1, 10),
	})
end

--- Returns the session's journal as Markdown.
function brief.journal(self: app.App): string
	local s = self.doc.session
	local entries: { any } = {}
	local values: { number } = {}
	for _, entry in s.history do
		local exchange: { any } = {}
		for index, question in entry.questions do
			table.insert(exchange, { question = question, answer = entry.responses[index] or "" })
		end
		local notes: { any } = {}
		for _, list in { s.flow_state.notes, s.flow_state.decisions } do
			for _, note in list do
				if note.iteration == entry.iteration then
					table.insert(notes, { kind = note.kind or "decision", text = note.text })
				end
			end
		end
		table.insert(values, entry.ems)
		table.insert(entries, {
			iteration = entry.iteration,
			phase = self.t(`phases.{entry.phase}`),
			ems = entry.ems,
			delta = ems.signed(entry.ems_delta),
			timestamp = entry.timestamp or "",
			minutes = entry.duration or 0,
			exchange = exchange,
			notes = notes,
		})
	end
	table.insert(values, s.ems)
	return template.render("./screens/journal.md", {
		l = lang.data(self.lang, "brief"),
		s = { slug = s.slug, id = s.id, ems = s.ems, minutes = s.duration_minutes, started_at = s.started_at, updated = s.updated },
		topic = s.flow_state.topic,
		course = ems.sparkline(values),
		entries = entries,
		techniques = s.techniques_history,
		party = s.party_history,
		panel = s.panel_history,
	})
end

--- Shows the brief as it would be.
function brief.preview(self: app.App)
	ui.say(brief.text(self, brief.draft(self)))
end

--- Writes brief and journal, closes the session and returns the run's result, or nil where nothing was said yet.
function brief.finish(self: app.App): any
	local s = self.doc.session
	if #brief.material(self) == 0 then
		ui.say(self.t("finish.nothing"))
		return nil
	end
	if s.ems < ems.TRANSITION then
		ui.say(self.t("finish.early", { ems = s.ems }))
	end
	-- Saved before the long part, so that nothing is lost if it is stopped.
	app.save(self)
	local draft = brief.draft(self)
	s.status = "completed"
	local path = app.save(self)
	local key = { slug = s.slug, date = string.sub(clock.now(), 1, 10) }
	local brief_path = briefs:save(brief.text(self, draft), { key = key, overwrite = true } :: any)
	local journal_path = journals:save(brief.journal(self), { key = key, overwrite = true } :: any)
	ui.say(table.concat({
		self.t("finish.title", {
			ems = s.ems,
			level = self.t(`levels.{ems.level(s.ems)}`),
			iterations = #s.history,
			minutes = s.duration_minutes,
		}),
		"",
		"- " .. self.t("finish.brief", { path = `\`{brief_path}\`` }),
		"- " .. self.t("finish.journal", { path = `\`{journal_path}\`` }),
		"- " .. self.t("save.done", { path = `\`{path}\`` }),
	}, "\n"))
	return { status = s.status, ems = s.ems, session = path, brief = brief_path, journal = journal_path }
end

return brief
