--!strict
--- What is to be built, as a small mind says it: stories with priority, effort and the iteration that each comes from; and the next steps. For the
--- brief, and for `plan-preview`.

local app = require("./app")
local brief_document = require("./brief_document")
local context = require("./context")
local list = require("../common/list")
local mind = require("../common/mind")
local notebook = require("./notebook")
local session = require("./session")
local shape = require("../common/shape")
local similarity = require("../common/similarity")

local stories = {}

local EFFORT: { [string]: number } = { S = 1, M = 3, L = 5 }
local RANK: { [string]: number } = { must = 1, should = 2, could = 3 }

--- What is to be built, as a brief has it.
export type Story = brief_document.Item

--- A next step, and the iteration that it comes from.
export type Step = { step: string, iteration: number }
--- Something that was said, and in which iteration.
export type Said = { iteration: number, text: string }

--- Returns the size of the work by its must stories: `TINY`, `STANDARD` or `LARGE`. Pure.
function stories.size(found: { Story }): string
	local sum = 0
	for _, story in found do
		if story.priority == "must" then
			sum += EFFORT[story.effort or "M"] or EFFORT.M
		end
	end
	return if sum <= 2 then "TINY" elseif sum <= 5 then "STANDARD" else "LARGE"
end

--- Returns what was said, by iteration, in those that count.
function stories.said_by_iteration(self: app.App): { Said }
	local found: { Said } = {}
	for _, entry in session.counted_history(self.doc) do
		for _, pair in context.answered_pairs(entry) do
			table.insert(found, { iteration = entry.iteration, text = pair.answer })
		end
	end
	for _, note in session.notes(self.doc, { "user" }) do
		table.insert(found, { iteration = note.iteration, text = note.text })
	end
	return found
end

--- Returns the iteration that a line comes from: the claimed one where it shares at least half as many words with the line as
--- any other does, else the one that shares most. A model's claim alone proves nothing.
function stories.origin(line: string, claimed: number?, material: { Said }): number
	local best, most = 0, 0
	local of_claimed = 0
	for _, item in material do
		local shared = similarity.shared_words(line, item.text)
		if item.iteration == claimed then
			of_claimed = math.max(of_claimed, shared)
		end
		if shared > most then
			best, most = item.iteration, shared
		end
	end
	if claimed ~= nil and of_claimed > 0 and of_claimed * 2 >= most then
		return claimed
	end
	return best
end

--- Returns stories without a model: decisions must be built, the best ideas should be.
function stories.without_model(self: app.App): { Story }
	local found: { Story } = {}
	for _, decision in notebook.holding(self.doc, { "decision" }) do
		table.insert(found, { from = { decision.id }, text = decision.text, priority = "must", effort = "M", iteration = decision.turn })
	end
	for index, idea in context.ideas(self) do
		if index <= 4 then
			table.insert(found, { from = { idea.id }, text = idea.content, priority = "should", effort = "M", iteration = idea.iteration })
		end
	end
	return found
end

--- Returns the stories, must first.
function stories.draft(self: app.App, problem: string): { Story }
	local material = stories.said_by_iteration(self)
	local vars = context.prompt_vars(self)
	vars.problem = problem
	vars.material = list.map(material, function(item): Said
		return { iteration = item.iteration, text = app.to_line(item.text, mind.CRUTCHES.note_letters) }
	end)
	local record = shape.object({ "story", "iteration", "priority", "effort" }, {
		story = shape.text(12, 220),
		iteration = shape.integer(0, 99),
		priority = { enum = { "must", "should", "could" } },
		effort = { enum = { "S", "M", "L" } },
	})
	local value = app.ask_model(self, {
		prompt = "stories",
		plain = true,
		vars = vars,
		schema = shape.object({ "stories" }, { stories = shape.list(record, 1, 6) }),
	})
	if value == nil then
		return stories.without_model(self)
	end
	local found: { Story } = {}
	local seen: { string } = {}
	local place: { [Story]: number } = {}
	for _, raw in value.stories do
		local line = app.to_line(raw.story, 220)
		if not similarity.repeats(line, seen) then
			table.insert(seen, line)
			local story: Story = {
				from = {},
				text = line,
				priority = raw.priority,
				effort = raw.effort,
				iteration = stories.origin(line, raw.iteration, material),
			}
			table.insert(found, story)
			place[story] = RANK[raw.priority] * 100 + #found
		end
	end
	table.sort(found, function(one: Story, other: Story): boolean
		return place[one] < place[other]
	end)
	return found
end

--- Returns the next steps towards these stories.
function stories.next_steps(self: app.App, towards: { Story }): { Step }
	local vars = context.prompt_vars(self)
	vars.stories = list.map(towards, function(story): { story: string, priority: string }
		return { story = story.text, priority = story.priority or "" }
	end)
	vars.answers = vars.recent
	local value = app.ask_model(self, {
		prompt = "steps",
		plain = true,
		vars = vars,
		schema = shape.list_of("steps", 1, 4, { step = shape.text(8, 180) }),
	})
	local material = stories.said_by_iteration(self)
	local found: { Step } = {}
	for _, step in if value then value.steps else {} do
		local line = app.to_line(step.step, 180)
		table.insert(found, { step = line, iteration = stories.origin(line, nil, material) })
	end
	return found
end

return stories
