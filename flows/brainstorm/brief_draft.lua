--!strict
--- What of a brief a model writes: the problem, who is touched, approaches, stories, risks and next steps, each with the entries of
--- the ledger that it rests on. The rest is the ledger itself (`brief_sections.lua`).

local app = require("./app")
local assessments = require("./assessments")
local context = require("./context")
local ledger = require("../common/ledger")
local list = require("../common/list")
local notebook = require("./notebook")
local outside_facts = require("./outside_facts")
local session = require("./session")
local shape = require("../common/shape")
local similarity = require("../common/similarity")
local stories = require("./stories")

local brief_draft = {}

export type Item = { text: string, from: { number }, iteration: number }
export type Approach = { name: string, how: string, price: string, recommended: boolean? }
export type Step = { step: string, owner: string, date: string, from: { number }, iteration: number }
export type Draft = {
	problem: string,
	origin: number,
	users: { Item },
	approaches: { Approach },
	stories: { stories.Story },
	steps: { Step },
}

--- The most answers from which a small mind writes.
local MAX_ANSWERS = 14

--- Returns what a small mind makes of the session, in calls of their own.
local function by_small(self: app.App): Draft
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
	local steps: { Step } = {}
	local next_steps: { stories.Step } = if self.options.plan then stories.next_steps(self, found) else {}
	for _, step in next_steps do
		table.insert(steps, { step = step.step, owner = "", date = "", from = {}, iteration = step.iteration })
	end
	if #self.doc.nietz.risks == 0 then
		assessments.find_risks(self)
	end
	local material = stories.said_by_iteration(self)
	local users: { Item }, known: { string } = {}, {}
	for _, raw in stated.users do
		-- A small model cuts "Ann, Bob" at the comma.
		local user = string.gsub(raw, "^[%s,;]+", "")
		if not similarity.repeats(user, known) then
			table.insert(known, user)
			table.insert(users, { text = app.to_line(user, 100), from = {}, iteration = stories.origin(user, nil, material) })
		end
	end
	return {
		problem = problem,
		origin = stories.origin(problem, nil, material),
		users = users,
		approaches = {},
		stories = found,
		steps = steps,
	}
end

local function draft_schema(): shape.Shape
	local line: shape.Shape, perhaps: shape.Shape = shape.text(1), { type = "string" }
	local from, degree = shape.list({ type = "integer" }), shape.integer(1, 3)
	return shape.object({ "problem", "users", "approaches", "stories", "risks", "steps" }, {
		problem = shape.object({ "from", "text" }, { from = from, text = line }),
		users = shape.list(shape.object({ "from", "text" }, { from = from, text = line })),
		approaches = shape.list(
			shape.object(
				{ "name", "how", "price", "recommended" },
				{ name = line, how = line, price = line, recommended = { type = "boolean" } }
			),
			0,
			3
		),
		stories = shape.list(shape.object({ "from", "story", "criteria", "effort", "priority" }, {
			from = from,
			story = line,
			criteria = shape.list(line, 1, 4),
			effort = { enum = { "S", "M", "L" } },
			priority = { enum = { "must", "should", "could" } },
		})),
		risks = shape.list(shape.object({ "from", "risk", "probability", "impact", "mitigation", "owner" }, {
			from = from,
			risk = line,
			probability = degree,
			impact = degree,
			mitigation = line,
			owner = perhaps,
		})),
		steps = shape.list(
			shape.object({ "from", "step", "owner", "date" }, { from = from, step = line, owner = perhaps, date = perhaps })
		),
	})
end

--- Returns all that holds as one text: what a figure may come from.
local function all_said(held: { ledger.Entry }, topic: string): string
	local lines = { topic }
	for _, entry in held do
		for _, part in { entry.text, entry.quote or "", entry.why or "", entry.owner or "", entry.date or "" } do
			table.insert(lines, part)
		end
	end
	return table.concat(lines, "\n")
end

--- Returns those of these ids that hold, and the iteration of the first.
local function rests_on(held: { ledger.Entry }, ids: { number }): ({ number }, number)
	local found: { number } = {}
	local iteration = 0
	for _, entry in held do
		if table.find(ids, entry.id) ~= nil then
			table.insert(found, entry.id)
			iteration = if iteration == 0 then entry.turn else iteration
		end
	end
	return found, iteration
end

--- Returns an entry as the prompt shows it.
local function shown(entry: ledger.Entry): { [string]: string | number }
	return {
		id = entry.id,
		kind = entry.kind,
		by = entry.by,
		text = entry.text,
		why = entry.why or "",
		rejected = entry.rejected or "",
		owner = entry.owner or "",
		date = entry.date or "",
	}
end

type RawStory = { from: { number }, story: string, criteria: { string }, effort: string, priority: string }

local RANK: { [string]: number } = { must = 1, should = 2, could = 3 }

--- Returns the stories that rest on an entry that holds, must first; one that rests on nothing was not said.
local function traced_stories(raw: { RawStory }, held: { ledger.Entry }, known: (string) -> boolean): { stories.Story }
	local found: { stories.Story } = {}
	for _, item in raw do
		local from, iteration = rests_on(held, item.from)
		if #from > 0 and known(item.story) then
			table.insert(found, {
				story = item.story,
				criteria = list.filter(item.criteria, known),
				priority = item.priority,
				effort = item.effort,
				from = from,
				iteration = iteration,
				rank = RANK[item.priority] * 100 + #found,
			})
		end
	end
	table.sort(found, function(one: stories.Story, other: stories.Story): boolean
		return (one.rank or 0) < (other.rank or 0)
	end)
	return found
end

--- Returns what a large mind makes of the ledger, in one call. What has a figure that nobody said is asked for once more, and
--- then left out.
local function by_large(self: app.App): Draft
	local doc = self.doc
	local held = notebook.holding(doc)
	local said = all_said(held, doc.nietz.topic)
	for _, file in self.reading.files do
		said ..= "\n" .. file.text
	end
	local function known(line: string): boolean
		return ledger.invented_number(line, said) == nil
	end
	local chosen = list.find(doc.nietz.approaches or {} :: { Approach }, function(one): boolean
		return one.recommended == true
	end)
	local value = app.ask_model(self, {
		prompt = "brief",
		plain = true,
		role = "author",
		alone = true,
		temperature = 0.2,
		vars = { topic = doc.nietz.topic, entries = list.map(held, shown), chosen = if chosen then chosen.name else "" },
		schema = draft_schema(),
		repairs = 1,
	})
	local draft: Draft = { problem = doc.nietz.topic, origin = 0, users = {}, approaches = {}, stories = {}, steps = {} }
	if value == nil then
		draft.stories = stories.without_model(self)
		return draft
	end
	if known(value.problem.text) then
		draft.problem = value.problem.text
		draft.origin = select(2, rests_on(held, value.problem.from))
	end
	for _, item in value.users do
		local from, iteration = rests_on(held, item.from)
		if known(item.text) then
			table.insert(draft.users, { text = item.text, from = from, iteration = iteration })
		end
	end
	draft.approaches = list.filter(value.approaches, function(item: Approach): boolean
		return known(item.name .. item.how .. item.price)
	end)
	draft.stories = traced_stories(value.stories, held, known)
	doc.nietz.risks = list.filter(doc.nietz.risks, function(risk): boolean
		return not risk.drafted
	end)
	for _, item in value.risks do
		local from, iteration = rests_on(held, item.from)
		local same = list.find(doc.nietz.risks, function(risk): boolean
			return similarity.repeats(item.risk, { risk.risk })
		end)
		if same ~= nil then
			-- A premortem has named it already.
			same.from = if #(same.from or {}) == 0 then from else same.from
		elseif known(item.risk .. item.mitigation .. item.owner) then
			table.insert(doc.nietz.risks, {
				risk = item.risk,
				probability = item.probability,
				impact = item.impact,
				mitigation = item.mitigation,
				iteration = iteration,
				owner = if item.owner ~= "" then item.owner else nil,
				from = from,
				drafted = true,
			})
		end
	end
	for _, item in if self.options.plan then value.steps else {} do
		local from, iteration = rests_on(held, item.from)
		if known(item.step .. item.owner .. item.date) then
			table.insert(draft.steps, { step = item.step, owner = item.owner, date = item.date, from = from, iteration = iteration })
		end
	end
	return draft
end

local function stamp(self: app.App): string
	local own = self.doc.nietz
	return `{#self.doc.session.history}/{self.doc.session.iteration}/{#own.notes}/{own.ledger.last}/{own.scored or 0}`
end

--- Returns what a model makes of the session. A draft that was made for a preview is used again while nothing was added: each
--- costs model calls.
function brief_draft.make(self: app.App): Draft
	local drafted = self.drafted
	if drafted ~= nil and drafted.stamp == stamp(self) then
		return drafted.value
	end
	local value = if self.mind == "small" then by_small(self) else by_large(self)
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
	self.drafted = { stamp = stamp(self), value = value }
	return value
end

return brief_draft
