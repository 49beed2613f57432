--!strict
--- Techniques that run over several steps and bring ideas in the user's own words. The steps are data (`techniques/*.yaml`); a
--- technique ends with its last step, or runs dry. Nothing is judged meanwhile; in the end the ideas are put together, and the user
--- rates them.

local app = require("./app")
local dialogue = require("./dialogue")
local list = require("../common/list")
local notebook = require("./notebook")
local shape = require("../common/shape")
local techniques = require("./techniques")
local text = require("@nietz/text")
local translations = require("../common/translations")
local ui = require("@nietz/ui")

local ideation = {}

--- How many steps without an idea mean that a technique has run dry.
local DRY = 2
--- How many ideas `--diverge` aims at, and the techniques that it goes through for them.
ideation.AIM = 20
local DIVERGE = { "brain-writing", "scamper", "reverse-brainstorm", "six-hats", "what-if" }
--- From how many ideas on they are put together.
local ENOUGH = 4

--- Returns the ideas of a line or of several: one on each line, or between semicolons.
local function split(answer: string): { string }
	local found: { string } = {}
	for _, line in text.lines((string.gsub(answer, ";%s+", "\n"))) do
		local bare = text.trim((string.gsub(line, "^%s*[%-%*•]%s+", "")))
		if bare ~= "" then
			table.insert(found, bare)
		end
	end
	return found
end

--- Returns what a large mind asks at each step about this very subject; the steps themselves without one.
local function prompts(self: app.App, technique: techniques.Technique, steps: { string }): { string }
	if self.mind == "small" then
		return steps
	end
	local value = app.ask_model(self, {
		prompt = "steps_of_technique",
		vars = { name = translations.pick(technique.name, self.lang), steps = steps, count = #steps },
		schema = shape.object({ "prompts" }, { prompts = shape.list(shape.text(5), #steps, #steps) }),
		temperature = 0.9,
	})
	return if value then value.prompts else steps
end

--- Runs a technique. Returns where a command leads, or nil at its end.
function ideation.run(self: app.App, technique: techniques.Technique): app.Signal?
	local steps: { string } = list.map(technique.steps or {}, function(step): string
		return translations.pick(step, self.lang)
	end)
	local asked = prompts(self, technique, steps)
	local dry = 0
	for index, step in steps do
		local title = self.t("ideation.step", { index = index, count = #steps, step = step })
		local prompt = if asked[index] ~= step then `{title}\n\n**{asked[index]}**` else title
		local answer, signal = dialogue.ask(self, { id = "idea", prompt = `{prompt}\n\n{self.t("ideation.ask")}` })
		if answer == nil then
			return if signal ~= nil and (signal.go == "next" or signal.go == "again") then nil else signal
		end
		local added = 0
		for _, idea in split(answer) do
			local made = notebook.add(self.doc, "idea", idea)
			if made ~= nil then
				ui.say(self.t("ledger.added", { line = notebook.line(self, made) }))
				added += 1
			end
		end
		app.save(self)
		dry = if added == 0 then dry + 1 else 0
		if dry >= DRY then
			ui.say(self.t("ideation.dry"))
			return nil
		end
	end
	return nil
end

--- Puts the ideas together in groups, and shows how to rate them. Ideas are the user's: none is changed or left out.
function ideation.gather(self: app.App)
	local ideas = notebook.holding(self.doc, { "idea" })
	ui.say(self.t("ideation.count", { count = #ideas }))
	if #ideas < ENOUGH or self.mind == "small" then
		return
	end
	local value = app.ask_model(self, {
		prompt = "groups",
		plain = true,
		vars = { ideas = ideas },
		schema = shape.object({ "groups" }, {
			groups = shape.list(shape.object({ "ids", "name" }, { ids = shape.list({ type = "integer" }, 1), name = shape.text(2) }), 1),
		}),
		temperature = 0,
	})
	local left = table.clone(ideas)
	local lines: { string } = {}
	local function show(title: string, ids: { number })
		table.insert(lines, `**{title}**`)
		table.insert(lines, "")
		for _, id in ids do
			for index, idea in left do
				if idea.id == id then
					table.insert(lines, `- {id} · {idea.text}`)
					table.remove(left, index)
					break
				end
			end
		end
		table.insert(lines, "")
	end
	local groups: { { name: string, ids: { number } } } = if value then value.groups else {}
	for _, group in groups do
		show(group.name, group.ids)
	end
	if #left > 0 then
		local ids = list.map(left, function(idea): number
			return idea.id
		end)
		show(self.t("ideation.others"), ids)
	end
	table.insert(lines, self.t("ideation.rate"))
	ui.say(table.concat(lines, "\n"))
end

--- `--diverge`: goes through techniques until there are many ideas, or nobody has any more.
function ideation.diverge(self: app.App): app.Signal?
	ui.say(self.t("ideation.diverge", { aim = ideation.AIM }))
	for _, slug in DIVERGE do
		local technique = techniques.find(slug)
		if technique ~= nil then
			local before = #notebook.holding(self.doc, { "idea" })
			ui.say(self.t("technique.now", techniques.in_language(technique, self.lang)))
			local signal = ideation.run(self, technique)
			if signal ~= nil then
				return signal
			end
			local now = #notebook.holding(self.doc, { "idea" })
			if now >= ideation.AIM or now == before then
				break
			end
		end
	end
	ideation.gather(self)
	return nil
end

return ideation
