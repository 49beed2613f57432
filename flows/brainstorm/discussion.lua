--!strict
--- What party and panel share: who takes part, how a persona is asked, and how a round is shown and summed up.

local app = require("./app")
local context = require("./context")
local dialogue = require("./dialogue")
local failure = require("../common/failure")
local personas = require("@nietz/personas")
local round = require("../common/round")
local session = require("./session")
local shape = require("../common/shape")
local similarity = require("../common/similarity")
local text = require("@nietz/text")
local ui = require("@nietz/ui")

local discussion = {}

--- What a round came to; `from_model` is false where no model could sum it up.
export type Synthesis = { from_model: boolean, agreed: { string }, contested: { string }, question: string }

--- The longest point of a persona, in letters: two sentences.
local LONGEST = 240

--- Returns what a round is about: what was asked last, or the subject itself.
function discussion.topic(self: app.App): string
	local s = self.doc.session
	return if s.last_question ~= "" then s.last_question else s.flow_state.topic
end

--- Returns at most `count` personas with this tag, those first whose interests the subject touches most.
function discussion.choose_personas(self: app.App, tag: string, count: number, always: { string }): { personas.Persona }
	local all = personas.list({ tag = tag })
	local subject = `{self.doc.session.flow_state.topic} {discussion.topic(self)}`
	local rank: { [string]: number } = {}
	for index, persona in all do
		local chosen = table.find(always, persona.slug)
		rank[persona.slug] = if chosen
			then chosen - 1000
			else index - 10 * similarity.shared_words(subject, `{persona.summary} {persona.body}`)
	end
	table.sort(all, function(a: personas.Persona, b: personas.Persona): boolean
		return rank[a.slug] < rank[b.slug]
	end)
	local found: { personas.Persona } = {}
	for index, persona in all do
		if index <= math.max(count, #always) then
			table.insert(found, persona)
		end
	end
	return found
end

--- Returns the persona that a person means by `name`, of those with this tag, or nil after saying who there is.
function discussion.find_persona(self: app.App, tag: string, name: string): personas.Persona?
	local names: { string } = {}
	for _, persona in personas.list({ tag = tag }) do
		if text.fold(persona.name) == text.fold(name) or persona.slug == text.fold(name) then
			return persona
		end
		table.insert(names, persona.name)
	end
	ui.say(self.t("voices.unknown", { name = name, names = table.concat(names, ", ") }))
	return nil
end

--- Returns the function that asks a persona for its points. `prompt` names the template, `most` is how many points it may make.
function discussion.speaker(self: app.App, prompt: string, most: number, extra: { [string]: any }): round.Speak
	return function(voice: any, seen: { round.Point }, ids: { string }, must: boolean): ({ string }?, { string }?)
		local vars = context.prompt_vars(self)
		for key, value in extra do
			vars[key] = value
		end
		vars.seen = {}
		for _, point in seen do
			if point.by ~= voice.name then
				table.insert(vars.seen, point)
			end
		end
		vars.must = must
		vars.framework = voice.meta.framework or ""
		vars.most = most
		local properties: { [string]: any } = { points = shape.list(shape.text(5, LONGEST), 1, most) }
		-- What the user or another persona said already is no point.
		local known = { table.concat(vars.said, "\n") }
		for _, point in seen do
			table.insert(known, point.text)
		end
		local function new_points(raw: { any }): { string }
			local said: { string } = {}
			for _, point in raw do
				local line = app.to_whole_line(point, LONGEST)
				if #similarity.words(line) >= 2 and not similarity.repeats(line, said) and not similarity.echoes(line, known) then
					table.insert(said, line)
				end
			end
			return said
		end
		local required = { "points" }
		if #ids > 0 then
			-- An enumeration, so that the model cannot refer to a point that nobody made.
			properties.refers = shape.list({ enum = ids }, if must then 1 else 0, 2)
			table.insert(required, "refers")
		end
		local value = app.ask_model(self, {
			prompt = prompt,
			vars = vars,
			persona = voice,
			temperature = 0.8,
			schema = shape.object(required, properties),
		})
		if value == nil then
			return nil, nil
		end
		local said = new_points(value.points)
		if #said == 0 then
			-- Somebody who spoke before and has nothing to answer is not silent.
			local spoke = false
			for _, point in seen do
				spoke = spoke or point.by == voice.name
			end
			if not spoke then
				ui.say(self.t("voices.silent", { name = voice.name }))
			end
			return nil, nil
		end
		return said, value.refers
	end
end

--- Says that a persona failed; the round goes on without it.
function discussion.on_failure(self: app.App): round.OnFailure
	return function(voice: any, err: any)
		ui.say(self.t("voices.failed", { name = voice.name, message = failure.of(err).message }))
	end
end

--- Shows what one persona said.
function discussion.show_contribution(self: app.App, contribution: round.Contribution)
	local lines: { string } = {}
	if #contribution.references > 0 then
		table.insert(lines, self.t("voices.refers", { names = table.concat(contribution.references, ", ") }))
		table.insert(lines, "")
	end
	for _, line in contribution.texts do
		table.insert(lines, `- {line}`)
	end
	ui.say(table.concat(lines, "\n"), { from = contribution.name })
end

--- Sums up a round: what all agree on, what stays open, and the question that it leaves to the user.
function discussion.synthesize(self: app.App, topic: string, points: { round.Point }): Synthesis
	local vars = context.prompt_vars(self)
	vars.question, vars.points = topic, points
	local value = app.ask_model(self, {
		prompt = "synthesis",
		plain = true,
		vars = vars,
		temperature = 0.2,
		schema = shape.record({
			agreed = shape.list(shape.text(5, 160), 0, 3),
			contested = shape.list(shape.text(5, 200), 0, 3),
			question = shape.text(8, 200),
		}),
	})
	if value == nil then
		return { from_model = false, agreed = {}, contested = {}, question = self.t("voices.weigh") }
	end
	local speakers: { string } = {}
	for _, point in points do
		table.insert(speakers, point.by)
	end
	local names = table.concat(speakers, " ")
	local kept: { string } = {}
	local function distinct_lines(raw: { string }, limit: number): { string }
		local found: { string } = {}
		for _, item in raw do
			local line = app.to_whole_line(item, limit)
			-- Two names alone say nothing, and what is contested is not agreed.
			if #similarity.words(line) - similarity.shared_words(line, names) >= 2 and not similarity.repeats(line, kept) then
				table.insert(kept, line)
				table.insert(found, line)
			end
		end
		return found
	end
	local contested = distinct_lines(value.contested, 200)
	local question = app.to_line(value.question, 220)
	if similarity.repeats(question, { topic }) then
		question = self.t("voices.weigh")
	end
	return { from_model = true, agreed = distinct_lines(value.agreed, 160), contested = contested, question = question }
end

--- Asks the user the question that a round leaves, and keeps the answer as a note of theirs.
function discussion.ask_user(self: app.App, id: string, key: string, question: string): app.Signal?
	local prompt = `{self.t(key, { question = question })}\n\n{self.t("ask.prompt")}`
	local answer, signal = dialogue.ask(self, { id = id, prompt = prompt })
	if answer == nil then
		return signal
	elseif answer ~= "" then
		session.add_note(self.doc, "notes", answer, "user", question)
	end
	app.save(self)
	return nil
end

return discussion
