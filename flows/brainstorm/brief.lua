--!strict
--- The end of a session: writes the brief, each line with the iteration that it came from, and the journal of the session.

local app = require("./app")
local assessments = require("./assessments")
local clock = require("@nietz/clock")
local context = require("./context")
local documents = require("@nietz/documents")
local ems = require("./ems")
local farewell = require("./farewell")
local lang = require("./lang")
local outside_facts = require("./outside_facts")
local shape = require("../common/shape")
local similarity = require("../common/similarity")
local statistics = require("./statistics")
local stories = require("./stories")
local template = require("@nietz/template")
local ui = require("@nietz/ui")

local brief = {}

local briefs = documents.collection("briefs")
local journals = documents.collection("journals")

local MAX_ANSWERS = 14

local function problem_and_users(self: app.App, answers: { any }): any
	local vars = context.prompt_vars(self)
	vars.answers = answers
	return app.ask_model(self, {
		prompt = "brief",
		plain = true,
		vars = vars,
		schema = shape.record({ problem = shape.text(20, 600), users = shape.list(shape.text(2, 100), nil, 4) }),
	}) or { problem = self.doc.session.flow_state.topic, users = {} }
end

local function escape_cell(value: string): string
	return (string.gsub(value, "|", "\\|"))
end

--- Returns the content of the brief. A draft that was made for a preview is used again while nothing was added: each costs
--- model calls.
function brief.draft(self: app.App): any
	local s = self.doc.session
	local state = s.flow_state
	local stamp = `{#s.history}/{#state.notes}/{#state.decisions}/{state.scored or 0}`
	local drafted = self.drafted
	if drafted ~= nil and drafted.stamp == stamp then
		return drafted.value
	end
	local answers: { any } = {}
	for _, entry in s.history do
		for _, pair in context.answered_pairs(entry) do
			table.insert(answers, pair)
		end
	end
	while #answers > MAX_ANSWERS do
		table.remove(answers, 1)
	end
	local stated = problem_and_users(self, answers)
	local problem = app.to_whole_line(stated.problem, 600)
	local list = stories.draft(self, problem)
	local next_steps = if self.options.plan then stories.next_steps(self, list) else {}
	if #state.risks == 0 then
		assessments.find_risks(self)
	end
	local examined: { [string]: boolean } = {}
	for _, note in state.notes do
		examined[note.kind or ""] = true
	end
	if self.options.security and not examined.security and assessments.touches_security(self) then
		assessments.security(self)
	end
	if self.options.lookups and not examined.lookups then
		outside_facts.list_lookups(self)
	end
	local material = stories.said_by_iteration(self)
	local users: { any }, known: { string } = {}, {}
	for _, raw in stated.users do
		-- A small model cuts "Ann, Bob" at the comma.
		local user = string.gsub(raw, "^[%s,;]+", "")
		if not similarity.repeats(user, known) then
			table.insert(known, user)
			table.insert(users, { text = app.to_line(user, 100), iteration = stories.origin(user, nil, material) })
		end
	end
	local value = { problem = problem, origin = stories.origin(problem, nil, material), users = users, stories = list, steps = next_steps }
	local new_stamp = `{#s.history}/{#state.notes}/{#state.decisions}/{state.scored or 0}`
	self.drafted = { stamp = new_stamp, value = value }
	return value
end

--- Returns the brief as Markdown.
function brief.render(self: app.App, draft: any): string
	local s = self.doc.session
	local state = s.flow_state
	local list, kept_ideas, risks = {}, {}, {}
	local story_texts: { string } = {}
	for _, story in draft.stories do
		table.insert(story_texts, story.story)
		table.insert(
			list,
			{ story = escape_cell(story.story), priority = story.priority, effort = story.effort, iteration = story.iteration }
		)
	end
	for _, idea in context.ideas(self) do
		if not similarity.repeats(idea.content, story_texts) then
			table.insert(kept_ideas, { content = idea.content, score = idea.score, iteration = idea.iteration or 0 })
		end
	end
	for _, risk in state.risks do
		table.insert(risks, {
			risk = escape_cell(risk.risk),
			mitigation = escape_cell(risk.mitigation),
			weight = risk.probability * risk.impact,
			high = risk.probability * risk.impact >= assessments.MITIGATE,
			iteration = risk.iteration,
		})
	end
	local findings: { any } = {}
	for _, note in state.notes do
		if note.kind ~= nil and note.kind ~= "user" then
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
		origin = draft.origin,
		users = draft.users,
		stories = list,
		size = stories.size(draft.stories),
		steps = draft.steps,
		decisions = state.decisions,
		risks = risks,
		ideas = kept_ideas,
		date = string.sub(clock.now(), 1, 10),
	})
end

--- Returns the session's journal as Markdown.
function brief.render_journal(self: app.App): string
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
					table.insert(
						notes,
						{ kind = note.kind or "decision", text = if note.about then `{note.about} → {note.text}` else note.text }
					)
				end
			end
		end
		table.insert(values, entry.ems)
		table.insert(entries, {
			iteration = entry.iteration,
			phase = self.t(`phases.{entry.phase}`),
			ems = entry.ems,
			delta = ems.with_sign(entry.ems_delta),
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
	ui.say(brief.render(self, brief.draft(self)))
end

--- Writes brief and journal, closes the session and returns the run's result, or nil where nothing was said yet.
function brief.finish(self: app.App): any
	local s = self.doc.session
	if #stories.said_by_iteration(self) == 0 then
		ui.say(self.t("finish.nothing"))
		return nil
	end
	if s.ems < ems.TRANSITION then
		ui.say(self.t("finish.early", { ems = s.ems }))
	end
	-- Saved before the model calls, so that nothing is lost if the run is stopped in them.
	app.save(self)
	local draft = brief.draft(self)
	s.status = "completed"
	local path = app.save(self)
	local key = { slug = s.slug, date = string.sub(clock.now(), 1, 10) }
	local brief_path = briefs:save(brief.render(self, draft) .. "\n", { key = key, overwrite = true } :: any)
	local journal_path = journals:save(brief.render_journal(self) .. "\n", { key = key, overwrite = true } :: any)
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
	statistics.record(self.t, s)
	farewell.say(self, if s.ems >= ems.TRANSITION then "victory" else "perseverance")
	return { status = s.status, ems = s.ems, session = path, brief = brief_path, journal = journal_path }
end

return brief
