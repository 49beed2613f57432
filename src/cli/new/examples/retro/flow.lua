--!strict
--- NAME: a team looks back on its week. One document a week in `retros/`, a model that sorts what was said, and actions that
--- the next week asks about. This is an example to change; its tests are in `tests/cassettes/NAME/`.

local ask = require("./NAME/ask")
local clock = require("@nietz/clock")
local documents = require("@nietz/documents")
local json = require("@nietz/json")
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local template = require("@nietz/template")
local ui = require("@nietz/ui")

type Group = { title: string, items: { number } }
type Action = { text: string, done: boolean }

local WEEK: nietz.Param = { type = "string", pattern = "^\\d{4}-W\\d{2}$", pattern_means = "a week such as 2026-W02" }

-- It may be asked for while the file is loaded: nothing is read before a run does so.
local retros = documents.collection("retros")

--- Asks about what is still open of the weeks before, and returns what stays so.
local function review(week: string): { string }
	local open: { string } = {}
	for _, entry in retros:list() do
		local actions: { Action } = if entry.value and entry.key.week < week then entry.value.actions else {}
		for _, action in actions do
			if not action.done then
				action.done = ui.confirm { id = "done", prompt = `Was it done? {action.text} ({entry.key.week})` }
				if action.done then
					retros:save(entry.value)
				else
					table.insert(open, action.text)
				end
			end
		end
	end
	return open
end

--- What a schema cannot say of the model's groups. What is returned is told to it, and it tries again.
local function misplaced(items: { ask.Item }, groups: { Group }): string?
	local missing = table.clone(items) :: { [number]: ask.Item }
	for _, group in groups do
		for _, number in group.items do
			if missing[number] == nil then
				return `there is no item {number}, or it stands in two groups`
			end
			missing[number] = nil
		end
	end
	local number = next(missing)
	return if number == nil then nil else `item {number} is in no group`
end

local function show(retro: any)
	for _, group: Group in retro.groups do
		local texts = {}
		for _, number in group.items do
			table.insert(texts, `- {retro.items[number].text}`)
		end
		ui.say(`**{group.title}**\n\n{table.concat(texts, "\n")}`)
	end
	for _, action: Action in retro.actions do
		ui.say(`{if action.done then "✓" else "○"} {action.text}`)
	end
end

-- In version 1, an action was a text. A migration sees its own document alone, and says itself which version that is now.
local function to_version_2(doc: any): any
	for place, text in doc.actions do
		doc.actions[place] = { text = text, done = false }
	end
	doc.version = 2
	return doc
end

return nietz.flow {
	name = "NAME",
	host_api = 2,
	summary = "Looks back on a week: what went well, what did not, and what is done about it",
	params = { week = WEEK },
	permissions = { llm = true },
	collections = {
		retros = {
			path = "retros/{week}.yaml",
			schema = "./NAME/retro.schema.json",
			keys = { week = "/week" },
			version = { field = "/version", current = 2, migrations = { ["1"] = to_version_2 } },
		},
	},
	commands = {
		list = {
			summary = "Lists the weeks",
			reads_only = true,
			run = function()
				for _, entry in retros:list() do
					local count = if entry.error then 0 else #entry.value.items
					local items = if count == 1 then "1 item" else `{count} items`
					ui.say(if entry.error then entry.error.message else `- {entry.key.week}: {items}`)
				end
			end,
		},
		show = {
			summary = "Shows one week",
			reads_only = true,
			params = { week = { type = "string", positional = true, required = true } },
			run = function(ctx)
				show(retros:load(ctx.params.week) or nietz.usage(`there is no retrospective of {ctx.params.week}`))
			end,
		},
	},
	run = function(ctx)
		local week: string = ctx.params.week or clock.format(clock.unix(), "%G-W%V")
		if retros:load(week) ~= nil then
			nietz.usage(`{week} has its retrospective already`, `nietz run NAME show {week}`)
		end
		local open, items = review(week), ask.all()
		local sorted = { groups = json.array {}, actions = json.array {} }
		if #items > 0 then
			sorted = llm.chat({
				prompt = template.render("./NAME/prompts/sort.md", { items = items, open = open }),
				schema = json.load("./NAME/sorted.schema.json"),
				check = function(value): string?
					return misplaced(items, value.groups)
				end,
			}).value
		end
		local retro = { version = 2, week = week, items = items, groups = sorted.groups, actions = json.array {} }
		for _, action in sorted.actions do
			if ui.confirm { id = "accept", prompt = `Shall we do this: {action}`, default = true } then
				table.insert(retro.actions, { text = action, done = false })
			end
		end
		show(retro)
		ui.say(`Saved: {retros:save(retro)}`)
		return retro
	end,
}
