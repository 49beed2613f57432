--!strict
--- Weighs what the user said in the iteration that is open: the model claims with evidence, `ems.lua` decides.

local app = require("./app")
local context = require("./context")
local ems = require("./ems")
local session = require("./session")
local ui = require("@nietz/ui")
local words = require("./words")

local scoring = {}

local function schema(): { [string]: any }
	local properties: { [string]: any } = {
		ideas = {
			type = "array",
			maxItems = 3,
			items = {
				type = "object",
				additionalProperties = false,
				required = { "content", "score" },
				properties = {
					content = { type = "string", minLength = 5, maxLength = 160 },
					score = { type = "integer", minimum = 0, maximum = 10 },
				},
			},
		},
		decided = { type = "array", maxItems = 2, items = { type = "string", minLength = 5, maxLength = 160 } },
	}
	local required = { "ideas", "decided" }
	for _, axis in ems.AXES do
		properties[axis.key] = {
			type = "object",
			additionalProperties = false,
			required = { "evidence", "score" },
			properties = {
				evidence = { type = "string", maxLength = 120 },
				score = { type = "integer", minimum = 0, maximum = 100 },
			},
		}
		table.insert(required, axis.key)
	end
	return { type = "object", additionalProperties = false, required = required, properties = properties }
end

--- Returns the user's own words in the open iteration: answers, and what was said beside them.
function scoring.said(self: app.App): string
	local lines: { string } = { session.said(self.doc) }
	for _, note in self.doc.session.flow_state.notes do
		if note.kind == "user" and note.iteration == self.doc.session.iteration then
			table.insert(lines, note.text)
		end
	end
	return table.concat(lines, "\n")
end

--- What a model reports as idea or decision must speak of what was said: it may not put words into the user's mouth.
local function rests_on(line: string, said: string): boolean
	return words.shared(line, said) >= math.min(2, #words.of(line))
end

local function collect(self: app.App, value: any, said: string): ({ string }, { string })
	local s = self.doc.session
	local known: { string } = {}
	for _, idea in s.ideas do
		table.insert(known, idea.content)
	end
	local ideas: { string } = {}
	for _, idea in value.ideas do
		local line = app.line(idea.content, 200)
		if rests_on(line, said) and not words.repeats(line, known) then
			table.insert(known, line)
			table.insert(ideas, line)
			session.add_idea(self.doc, line, idea.score)
		end
	end
	local settled: { string } = {}
	for _, decision in s.flow_state.decisions do
		table.insert(settled, decision.text)
	end
	local decided: { string } = {}
	for _, decision in value.decided do
		local line = app.line(decision, 200)
		if rests_on(line, said) and not words.repeats(line, settled) then
			table.insert(settled, line)
			table.insert(decided, line)
			session.note(self.doc, "decisions", line)
		end
	end
	return ideas, decided
end

local function bullets(title: string, lines: { string }): string
	return if #lines == 0 then "" else `\n\n{title}\n\n- ` .. table.concat(lines, "\n- ")
end

--- Shows the EMS as bars, with what changed since `before`.
function scoring.show(self: app.App, before: ems.Axes?)
	local s = self.doc.session
	local old = if before then ems.combine(before) else s.ems
	local title = self.t("ems.title", {
		ems = s.ems,
		delta = ems.signed(s.ems - old),
		level = self.t(`levels.{ems.level(s.ems)}`),
		iteration = s.iteration,
	})
	if not self.switches.chart then
		ui.say(title)
		return
	end
	ui.say(`**{title}**\n\n\`\`\`text\n{ems.chart(s.flow_state.axes, before, context.labels(self))}\n\`\`\``)
end

local function advise(self: app.App)
	local s = self.doc.session
	local weak = ems.weak(s.flow_state.axes, s.phase)
	local advice = ems.advice(s.ems, weak)
	if s.ems >= self.switches.checkpoint and (s.flow_state.checkpoint or 0) == 0 then
		-- The checkpoint says it in a moment.
		return
	end
	local axis = weak[1] or "clarity"
	ui.say(self.t(`ems.advice.{advice}`, { axis = self.t(`axes.{axis}`) }))
end

--- Scores the open iteration, records ideas and decisions, and shows where the session stands.
function scoring.run(self: app.App)
	local s = self.doc.session
	local before = table.clone(s.flow_state.axes)
	local said = scoring.said(self)
	if #words.of(said) == 0 then
		ui.say(self.t("ems.said_nothing"))
		s.flow_state.scored = s.iteration
		return
	end
	local vars = context.of(self, s.iteration - 1)
	vars.answers = context.exchange(session.current(self.doc))
	for _, note in s.flow_state.notes do
		if note.kind == "user" and note.iteration == s.iteration then
			table.insert(vars.answers, { question = "…", answer = app.line(note.text, 400) })
		end
	end
	local value = app.think(self, { prompt = "score", vars = vars, schema = schema(), temperature = 0 })
	local ideas: { string }, decided: { string } = {}, {}
	local held: { [string]: boolean } = {}
	if value ~= nil then
		local axes, back = ems.damp(before, value, said)
		session.score(self.doc, axes)
		ideas, decided = collect(self, value, said)
		held = back
	end
	s.flow_state.scored = s.iteration
	scoring.show(self, before)
	local notes = bullets(self.t("ems.ideas"), ideas) .. bullets(self.t("ems.decided"), decided)
	local names: { string } = {}
	for _, axis in ems.AXES do
		if held[axis.key] then
			table.insert(names, self.t(`axes.{axis.key}`))
		end
	end
	if #names > 0 and self.switches.chart then
		notes ..= "\n\n" .. self.t("ems.held", { axes = table.concat(names, ", ") })
	end
	if notes ~= "" then
		ui.say((string.gsub(notes, "^\n+", "")))
	end
	if self.switches.suggest then
		advise(self)
	end
end

return scoring
