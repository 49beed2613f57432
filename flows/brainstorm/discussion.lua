--!strict
--- What party and panel share: who takes part, how a persona is asked, and how a round is shown and summed up; and one voice that is
--- asked by its name (`@Backend what about P3?`).

local app = require("./app")
local context = require("./context")
local dialogue = require("./dialogue")
local failure = require("../common/failure")
local list = require("../common/list")
local notebook = require("./notebook")
local noting = require("./noting")
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

--- The longest point of a small mind, in letters: two sentences.
local LONGEST = 240

--- Returns the question that is on the screen, or nil between two iterations.
local function open_question(self: app.App): string?
	local entry = session.current_entry(self.doc)
	if entry == nil or session.has_later_iterations(self.doc) then
		return nil
	end
	return entry.questions[#entry.responses + 1]
end

--- Returns what a round is about: the question on the screen; where none is, what was left contested or open, no round has had yet,
--- and most of what was noted speaks of; or the subject itself.
function discussion.topic(self: app.App): string
	local open = open_question(self)
	if open ~= nil then
		return open
	end
	local s = self.doc.session
	local held = notebook.holding(self.doc)
	local best: string?, most = nil, -1
	for _, left in notebook.holding(self.doc, { "contested", "open" }) do
		local function had(one: { topic: string }): boolean
			return one.topic == left.text
		end
		local share = 0
		for _, entry in held do
			share += if entry ~= left then similarity.shared_words(left.text, entry.text) else 0
		end
		-- Of two that weigh the same, the newer one. What somebody says of themselves is no question to a team.
		local impersonal = string.find(left.text, "^I[ ']") == nil
		if impersonal and share >= most and not list.some(s.party_history, had) and not list.some(s.panel_history, had) then
			best, most = left.text, share
		end
	end
	return best or self.doc.nietz.topic
end

--- Returns at most `count` personas with this tag, those first whose interests the subject touches most.
function discussion.choose_personas(self: app.App, tag: string, count: number, always: { string }): { personas.Persona }
	local all = personas.list({ tag = tag })
	local subject = `{self.doc.nietz.topic} {discussion.topic(self)}`
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

--- Returns a point in which ids of other points stand as whose they are: ids are for those who speak, not for a record.
local function without_ids(line: string, seen: { round.Point }): string
	return (
		string.gsub(line, "%f[%w]P(%d+)%f[%W]", function(number: string): string?
			for _, point in seen do
				if point.id == `P{number}` then
					return `{point.by} ({text.truncate(point.text, 60)})`
				end
			end
			return nil
		end)
	)
end

--- Returns the points of a reply that add something. A small mind repeats the user, itself and others.
local function new_points(self: app.App, raw: { string }, said: string, seen: { round.Point }): { string }
	local known = { said }
	for _, point in seen do
		table.insert(known, point.text)
	end
	local found: { string } = {}
	for _, point in raw do
		if self.mind == "large" then
			local line = without_ids(text.trim((string.gsub(point, "%s+", " "))), seen)
			if line ~= "" and table.find(found, line) == nil and table.find(known, line) == nil then
				table.insert(found, line)
			end
		else
			local line = app.to_whole_line(point, LONGEST)
			if #similarity.words(line) >= 2 and not similarity.repeats(line, found) and not similarity.echoes(line, known) then
				table.insert(found, line)
			end
		end
	end
	return found
end

--- Returns the function that asks a persona for its points. `prompt` names the template, `most` is how many points it may make.
function discussion.speaker(self: app.App, prompt: string, most: number, extra: app.Vars): round.Speak
	return function(voice: round.Voice, seen: { round.Point }, ids: { string }, must: boolean): ({ string }?, { string }?)
		local small = self.mind == "small"
		local vars: app.Vars = if small then context.prompt_vars(self) else {}
		local known = if small then context.said(self) else {}
		for key, value in extra do
			vars[key] = value
		end
		vars.seen = list.filter(seen, function(point): boolean
			return point.by ~= voice.name
		end)
		vars.must = must
		vars.framework = voice.meta.framework or ""
		vars.most = most
		local point = if self.mind == "small" then shape.text(5, LONGEST) else shape.text(5)
		local properties: { [string]: shape.Shape } = { points = shape.list(point, 1, most) }
		local required = { "points" }
		if #ids > 0 then
			-- An enumeration, so that the model cannot refer to a point that nobody made.
			properties.refers = shape.list({ enum = ids }, if must then 1 else 0, 2)
			table.insert(required, if self.mind == "small" then 2 else 1, "refers")
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
		local said = new_points(self, value.points, table.concat(known, "\n"), seen)
		if #said == 0 then
			ui.say(self.t("voices.silent", { name = voice.name }))
			return nil, nil
		end
		return said, value.refers
	end
end

--- Says that a persona failed; the round goes on without it.
function discussion.on_failure(self: app.App): round.OnFailure
	return function(voice: round.Voice, err: unknown)
		ui.say(self.t("voices.failed", { name = voice.name, message = failure.of(err).message }))
	end
end

--- Shows what one persona said, each point with the id by which it can be spoken of; what answers others stands behind their names.
function discussion.show_contribution(self: app.App, contribution: round.Contribution, points: { round.Point })
	local lines: { string } = {}
	local answers_from = #contribution.texts - (contribution.answers or #contribution.texts) + 1
	for index, line in contribution.texts do
		if index == answers_from and #contribution.references > 0 then
			if index > 1 then
				table.insert(lines, "")
			end
			table.insert(lines, self.t("voices.refers", { names = table.concat(contribution.references, ", ") }))
			table.insert(lines, "")
		end
		local point = list.find(points, function(one): boolean
			return one.by == contribution.name and one.text == line
		end)
		table.insert(lines, if point then `- {point.id} · {line}` else `- {line}`)
	end
	ui.say(table.concat(lines, "\n"), { from = contribution.name })
end

--- Sums up a round: what all agree on, what stays open, and the question that it leaves to the user.
function discussion.synthesize(self: app.App, topic: string, points: { round.Point }): Synthesis
	local small = self.mind == "small"
	local vars: app.Vars = if small then context.prompt_vars(self) else {}
	vars.question, vars.points = topic, points
	local function line(most: number): shape.Shape
		return if small then shape.text(5, most) else shape.text(5)
	end
	local value = app.ask_model(self, {
		prompt = "synthesis",
		plain = true,
		vars = vars,
		temperature = 0.2,
		schema = shape.object({ "agreed", "contested", "question" }, {
			agreed = shape.list(line(160), 0, if small then 3 else nil),
			contested = shape.list(line(200), 0, if small then 3 else nil),
			question = if small then shape.text(8, 200) else shape.text(8),
		}),
	})
	if value == nil then
		return { from_model = false, agreed = {}, contested = {}, question = self.t("voices.weigh") }
	elseif not small then
		local function lines(raw: { string }): { string }
			return list.map(raw, function(item): string
				return without_ids(text.trim((string.gsub(item, "%s+", " "))), points)
			end)
		end
		return { from_model = true, agreed = lines(value.agreed), contested = lines(value.contested), question = value.question }
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
			local whole = app.to_whole_line(item, limit)
			-- Two names alone say nothing, and what is contested is not agreed.
			if #similarity.words(whole) - similarity.shared_words(whole, names) >= 2 and not similarity.repeats(whole, kept) then
				table.insert(kept, whole)
				table.insert(found, whole)
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

local function number_of(point: round.Point): number
	return tonumber(string.match(point.id, "%d+")) or 0
end

--- Returns how many points were made in all rounds so far: no id is given twice.
function discussion.points_made(self: app.App): number
	local last = self.doc.nietz.rounds[#self.doc.nietz.rounds]
	return if last then last.last or 0 else 0
end

--- Keeps what a round came to: in the ledger, and in which iteration it was held. Shows both lists.
function discussion.keep(self: app.App, kind: string, number: number, synthesis: Synthesis, points: { round.Point })
	local by = `{kind} {number}`
	for _, line in synthesis.agreed do
		notebook.add(self.doc, "finding", line, { by = by })
	end
	for _, line in synthesis.contested do
		notebook.add(self.doc, "contested", line, { by = by })
	end
	table.insert(
		self.doc.nietz.rounds,
		{ kind = kind, round = number, iteration = session.turn(self.doc), last = number_of(points[#points]) }
	)
	app.save(self)
	if #synthesis.agreed > 0 then
		ui.say(`{self.t("voices.convergent")}\n\n- {table.concat(synthesis.agreed, "\n- ")}`)
	end
	if #synthesis.contested > 0 then
		ui.say(`{self.t("voices.tensions")}\n\n- {table.concat(synthesis.contested, "\n- ")}`)
	end
end

--- Asks the user the question that a round leaves, and keeps the answer as a note of theirs.
function discussion.ask_user(self: app.App, id: string, key: string, question: string): app.Signal?
	local prompt = `{self.t(key, { question = question })}\n\n{self.t("ask.prompt")}`
	local answer, signal = dialogue.ask(self, { id = id, prompt = prompt })
	if answer == nil then
		return signal
	elseif answer ~= "" then
		session.add_note(self.doc, answer, "user", question)
	end
	app.save(self)
	if answer ~= "" then
		noting.catch_up(self, true)
	end
	return nil
end

--- Returns the voice that a line names behind its `@`, by its name or its slug, and what is asked of it.
local function named_voice(line: string): (personas.Persona?, string)
	local asked = text.fold(string.sub(line, 2))
	local found: personas.Persona?, longest = nil, 0
	for _, tag in { "party", "panel" } do
		for _, persona in personas.list({ tag = tag }) do
			for _, name in { persona.name, persona.slug } do
				local folded = text.fold(name)
				local behind = string.sub(asked, #folded + 1, #folded + 1)
				if #folded > longest and string.sub(asked, 1, #folded) == folded and string.find(behind, "^[%w_%-]") == nil then
					found, longest = persona, #folded
				end
			end
		end
	end
	return found, text.trim((string.gsub(string.sub(line, 2 + longest), "^[%s,:]+", "")))
end

--- Returns the points of the last round, which another one, and a question to one voice, can speak of.
function discussion.last_points(self: app.App): { round.Point }
	local s = self.doc.session
	local kind = if s.panel_active then "panel" else "party"
	local held = if s.panel_active then #s.panel_history else #s.party_history
	local _, said = session.points(self.doc, kind, held)
	local kept = list.find(self.doc.nietz.rounds, function(one): boolean
		return one.kind == kind and one.round == held
	end)
	-- The ids under which they were shown.
	local before = math.max(0, (if kept then kept.last or 0 else 0) - #said)
	local points: { round.Point } = {}
	for number, point in said do
		table.insert(points, { id = `P{before + number}`, by = point.by, text = point.text })
	end
	return points
end

--- Asks one voice, at any time. Returns false where the line names nobody: it is an answer that begins with `@`.
function discussion.ask_voice(self: app.App, line: string): boolean
	local voice, question = named_voice(line)
	if voice == nil then
		return false
	end
	local asked = if question == "" then discussion.topic(self) else question
	local points = discussion.last_points(self)
	local speak = discussion.speaker(self, "voice", 3, { question = asked })
	local reply = round.speak_once(voice, points, false, speak)
	if reply ~= nil then
		discussion.show_contribution(self, reply, points)
		session.add_note(self.doc, table.concat(reply.texts, " "), "aside", asked, voice.name)
		app.save(self)
	end
	return true
end

return discussion
