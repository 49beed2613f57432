--!strict
--- The brief of a session: a large mind writes it (`brief_writing.lua`), a small one makes parts of it in calls of their own, and what
--- holds in the ledger stands beside them.

local app = require("./app")
local assessments = require("./assessments")
local brief_check = require("./brief_check")
local brief_document = require("./brief_document")
local brief_sections = require("./brief_sections")
local brief_writing = require("./brief_writing")
local confidences = require("./confidences")
local context = require("./context")
local list = require("../common/list")
local outside_facts = require("./outside_facts")
local session = require("./session")
local shape = require("../common/shape")
local similarity = require("../common/similarity")
local stories = require("./stories")

local brief_draft = {}

type Item = brief_document.Item

--- The most answers from which a small mind writes.
local MAX_ANSWERS = 14

--- Returns a document with what holds in it, each entry in its section, in its own words.
local function with_entries(self: app.App, document: brief_document.Document): brief_document.Document
	local held = confidences.tellable(self.doc)
	for _, entry in held do
		local section = brief_document.OF_KIND[entry.kind]
		local wanted = section ~= nil and (section ~= "steps" or self.options.plan)
		-- Rounds of voices leave a small mind little that is contested: all of it is told.
		if wanted and (entry.by ~= "user" or brief_check.says_something(entry)) then
			brief_check.place(document, { entry })
		end
	end
	return brief_check.drop_doubles(document, held)
end

--- Returns what there is to say where the reply of a large mind could not be used: what holds, as it was noted.
local function by_nobody(self: app.App): brief_document.Document
	local document = brief_document.empty()
	document.problem = { { from = {}, text = self.doc.nietz.topic } }
	return with_entries(self, document)
end

--- Returns what a small mind makes of the session, in calls of their own.
local function by_small(self: app.App): brief_document.Document
	local answers: { context.Pair } = {}
	for _, entry in session.counted_history(self.doc) do
		for _, pair in context.answered_pairs(entry) do
			table.insert(answers, pair)
		end
	end
	while #answers > MAX_ANSWERS do
		table.remove(answers, 1)
	end
	local vars = context.prompt_vars(self)
	vars.answers = answers
	local stated = app.ask_model(self, {
		prompt = "brief",
		plain = true,
		vars = vars,
		schema = shape.record({ problem = shape.text(20, 600), users = shape.list(shape.text(2, 100), nil, 4) }),
	}) or { problem = self.doc.nietz.topic, users = {} }
	local problem = app.to_whole_line(stated.problem, 600)
	local found = stories.draft(self, problem)
	local next_steps: { stories.Step } = if self.options.plan then stories.next_steps(self, found) else {}
	if #self.doc.nietz.risks == 0 then
		assessments.find_risks(self)
	end
	local material = stories.said_by_iteration(self)
	local document = brief_document.empty()
	document.problem = { { from = {}, text = problem, iteration = stories.origin(problem, nil, material) } }
	document.stories = found
	document.steps = list.map(next_steps, function(step): Item
		return { from = {}, text = step.step, owner = "", date = "", iteration = step.iteration }
	end)
	for _, risk in self.doc.nietz.risks do
		table.insert(document.risks, {
			from = {},
			text = risk.risk,
			probability = risk.probability,
			impact = risk.impact,
			mitigation = risk.mitigation,
			iteration = risk.iteration,
		})
	end
	document.approaches = list.map(self.doc.nietz.approaches or {} :: { session.Approach }, function(one): Item
		local standing = if one.chosen then "chosen" elseif one.recommended then "recommended" else "open"
		return { from = {}, text = one.how, name = one.name, price = one.price, standing = standing }
	end)
	local known: { string } = {}
	for _, raw in stated.users do
		-- A small model cuts "Ann, Bob" at the comma.
		local user = string.gsub(raw, "^[%s,;]+", "")
		if not similarity.repeats(user, known) then
			table.insert(known, user)
			table.insert(document.users, { from = {}, text = app.to_line(user, 100), iteration = stories.origin(user, nil, material) })
		end
	end
	return with_entries(self, document)
end

--- What the session is like, as far as a brief depends on it.
local function stamp(self: app.App): string
	local own = self.doc.nietz
	return `{#self.doc.session.history}/{self.doc.session.iteration}/{#own.notes}/{own.ledger.last}/{own.scored or 0}`
end

--- Returns what a model makes of the session. A draft that was made for a preview is used again while nothing was added: each
--- costs model calls.
function brief_draft.make(self: app.App): brief_document.Brief
	local drafted = self.drafted
	if drafted ~= nil and drafted.stamp == stamp(self) then
		return drafted.value
	end
	local examined: { [string]: boolean } = {}
	for _, note in self.doc.nietz.notes do
		examined[note.kind or ""] = true
	end
	if self.options.security and not examined.security and assessments.touches_security(self) then
		assessments.security(self)
	end
	if self.options.lookups and not examined.lookups then
		outside_facts.list_lookups(self)
	end
	local value: brief_document.Brief
	if self.mind == "small" then
		value = brief_sections.of_items(self, by_small(self))
	else
		value = brief_writing.write(self) or brief_sections.of_items(self, by_nobody(self))
	end
	self.drafted = { stamp = stamp(self), value = value }
	return value
end

return brief_draft
