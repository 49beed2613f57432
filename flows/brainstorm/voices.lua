--!strict
--- What party and panel share: who is asked, how a voice is prompted, how a round is drawn together and shown.

local app = require("./app")
local ask = require("./ask")
local context = require("./context")
local failure = require("../common/failure")
local personas = require("@nietz/personas")
local round = require("../common/round")
local session = require("./session")
local shape = require("../common/shape")
local similarity = require("../common/similarity")
local text = require("@nietz/text")
local ui = require("@nietz/ui")

local voices = {}

--- `drawn` is false where no model could draw the round together.
export type Synthesis = { drawn: boolean, agreed: { string }, contested: { string }, question: string }

--- No point of a voice is longer, in letters: two sentences.
local LONGEST = 240

--- Returns what a round is about: what was asked last, or the subject itself.
function voices.topic(self: app.App): string
	local s = self.doc.session
	return if s.last_question ~= "" then s.last_question else s.flow_state.topic
end

--- Returns at most `count` personas with this tag, those first whose interests the subject touches most.
function voices.select(self: app.App, tag: string, count: number, always: { string }): { personas.Persona }
	local all = personas.list({ tag = tag })
	local subject = `{self.doc.session.flow_state.topic} {voices.topic(self)}`
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
function voices.find(self: app.App, tag: string, name: string): personas.Persona?
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

--- Returns how a voice of this session is asked. `prompt` names the template, `most` how many texts it may give.
function voices.speaker(self: app.App, prompt: string, most: number, extra: { [string]: any }): round.Speak
	return function(voice: any, seen: { round.Point }, ids: { string }, must: boolean): ({ string }?, { string }?)
		local vars = context.of(self)
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
		-- What the user said, in whatever order, or what another voice said is no point.
		local known = { table.concat(vars.said, "\n") }
		for _, point in seen do
			table.insert(known, point.text)
		end
		local function fresh(raw: { any }): { string }
			local said: { string } = {}
			for _, point in raw do
				local line = app.whole(point, LONGEST)
				if #similarity.words(line) >= 2 and not similarity.repeats(line, said) and not similarity.echoes(line, known) then
					table.insert(said, line)
				end
			end
			return said
		end
		local required = { "points" }
		if #ids > 0 then
			-- The ids are an enumeration: a reference to something that nobody said cannot even be written.
			properties.refers = shape.list({ enum = ids }, if must then 1 else 0, 2)
			table.insert(required, "refers")
		end
		local value = app.think(self, {
			prompt = prompt,
			vars = vars,
			persona = voice,
			temperature = 0.8,
			schema = shape.object(required, properties),
		})
		if value == nil then
			return nil, nil
		end
		local said = fresh(value.points)
		if #said == 0 then
			-- Whoever spoke before and only has nothing to answer is not silent.
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

--- Says that a voice failed; the round goes on without it.
function voices.failed(self: app.App): round.OnFailure
	return function(voice: any, err: any)
		ui.say(self.t("voices.failed", { name = voice.name, message = failure.of(err).message }))
	end
end

--- Shows what one voice said.
function voices.show(self: app.App, contribution: round.Contribution)
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

--- Draws a round together: what all share, what stays open, and the question that it leaves to the user.
function voices.synthesis(self: app.App, topic: string, points: { round.Point }): Synthesis
	local vars = context.of(self)
	vars.question, vars.points = topic, points
	local value = app.think(self, {
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
		return { drawn = false, agreed = {}, contested = {}, question = self.t("voices.weigh") }
	end
	local speakers: { string } = {}
	for _, point in points do
		table.insert(speakers, point.by)
	end
	local names = table.concat(speakers, " ")
	local kept: { string } = {}
	local function lines(raw: { string }, limit: number): { string }
		local found: { string } = {}
		for _, item in raw do
			local line = app.whole(item, limit)
			-- Two names alone say nothing, and what is contested is not agreed.
			if #similarity.words(line) - similarity.shared_words(line, names) >= 2 and not similarity.repeats(line, kept) then
				table.insert(kept, line)
				table.insert(found, line)
			end
		end
		return found
	end
	local contested = lines(value.contested, 200)
	local question = app.line(value.question, 220)
	if similarity.repeats(question, { topic }) then
		question = self.t("voices.weigh")
	end
	return { drawn = true, agreed = lines(value.agreed, 160), contested = contested, question = question }
end

--- Asks the user what a round leaves to them, and keeps the answer as something that they said.
function voices.put(self: app.App, id: string, key: string, question: string): app.Signal?
	local prompt = `{self.t(key, { question = question })}\n\n{self.t("ask.prompt")}`
	local answer, signal = ask.line(self, { id = id, prompt = prompt })
	if answer == nil then
		return signal
	elseif answer ~= "" then
		session.note(self.doc, "notes", answer, "user", question)
	end
	app.save(self)
	return nil
end

return voices
