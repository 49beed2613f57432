--!strict
--- How options change in the debate: whoever sits in it can add one, amend one, or merge several into one. What is proposed is a
--- new option with a letter of its own, for which its author and, from the next cycle on, anybody can stand: nobody's position is
--- changed by another one's words. An option that became part of another, and for which nobody stands any more, is gone; options that
--- nobody tells apart by what is done are one, and so are the votes for them. Both are told to all.

local app = require("./app")
local json = require("@nietz/json")
local list = require("../common/list")
local session = require("./session")
local shape = require("../common/shape")
local similarity = require("../common/similarity")
local ui = require("@nietz/ui")

local proposals = {}

--- The stance of whoever stands for what they propose.
proposals.STANCE = "proposal"

local LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
--- Two proposals that share more than this are one.
local SAME = 0.85
--- From so many options on the moderator is asked whether some are one, where the debate brought any.
local FEWEST = 3

--- Returns the letters of all options that can be stood for.
function proposals.open_ids(self: app.App): { string }
	return list.map(app.open_options(self), function(option: session.Option): string
		return option.id
	end)
end

--- Returns the schema of what a persona proposes.
function proposals.schema(self: app.App): shape.Shape
	local ids = proposals.open_ids(self)
	return shape.list(
		shape.object({ "what", "options", "name", "text" }, {
			what = { enum = { "add", "amend", "merge" } },
			options = shape.list({ enum = ids }, 0, #ids),
			name = shape.text(2),
			text = shape.text(3),
		}),
		0,
		1
	)
end

--- Returns what is wrong with what a reply proposes, or nil.
function proposals.fault(self: app.App, value: app.Values): string?
	local proposal = (value.proposals or {})[1]
	if value.stance == proposals.STANCE and proposal == nil then
		return "stance: `proposal` is for an option that you propose; there is none in proposals"
	elseif proposal ~= nil and proposal.what == "amend" and #proposal.options ~= 1 then
		return "proposals: to amend, name the letter of one option"
	elseif proposal ~= nil and proposal.what == "merge" and #proposal.options < 2 then
		return "proposals: to merge, name the letters of at least two options"
	end
	return nil
end

--- Returns the letter of an option by its place among all.
function proposals.letter_at(place: number): string
	return if place <= #LETTERS then string.sub(LETTERS, place, place) else `Z{place - #LETTERS}`
end

--- Turns what was proposed in a cycle into options, and the stances of those who stand for theirs into letters. Returns the new
--- options; they are recorded by `proposals.open`.
function proposals.letter(self: app.App, values: { { name: string, value: app.Values } }): { session.Option }
	local new: { session.Option } = {}
	for _, said in values do
		local value = said.value
		local proposal = (value.proposals or {})[1]
		if proposal ~= nil then
			local line = app.to_line(proposal.text)
			local function same(option: session.Option): boolean
				return not option.gone and (option.text == line or similarity.of_texts(option.text, line) > SAME)
			end
			-- An amendment is nearly what it amends: only its own words say it again.
			local known = list.find(new, same)
				or list.find(app.open_options(self), function(option: session.Option): boolean
					return option.text == line
				end)
			local option: session.Option = known
				or {
					id = proposals.letter_at(#self.doc.metadata.options + #new + 1),
					text = line,
					name = app.to_line(proposal.name),
					from = json.array(table.clone(if proposal.what == "add" then {} else proposal.options)),
					by = json.array({}),
				}
			if known == nil then
				table.insert(new, option)
			end
			local by = option.by or {}
			if table.find(new, option) ~= nil and table.find(by, said.name) == nil then
				table.insert(by, said.name)
			end
			-- One that is there already is stood for and not proposed again.
			value.proposed = if table.find(new, option) ~= nil then json.array({ { id = option.id, text = option.text } }) else nil
			value.stance = if value.stance == proposals.STANCE then option.id else value.stance
		end
	end
	return new
end

--- Records new options.
function proposals.open(self: app.App, new: { session.Option })
	if #new > 0 then
		app.record_event(self, "options", { options = json.array(new) })
	end
end

--- Records which options are gone, and tells everybody: those that became part of another for which somebody stands, and for which
--- nobody does.
function proposals.close(self: app.App, positions: { { name: string, option: string, confidence: number } })
	local stood: { [string]: boolean } = {}
	for _, position in positions do
		stood[position.option] = true
	end
	local gone: { string }, told: { string } = {}, {}
	for _, option in app.open_options(self) do
		for _, id in option.from or {} :: { string } do
			local part = list.find(app.open_options(self), function(other: session.Option): boolean
				return other.id == id
			end)
			if stood[option.id] and part ~= nil and not stood[id] and table.find(gone, id) == nil then
				table.insert(gone, id)
				table.insert(told, self.t("debate.gone", { id = id, name = app.option_name(self, id), into = option.id }))
			end
		end
	end
	if #gone > 0 then
		app.record_event(self, "gone", { options = json.array(gone) })
		app.tell(self, `# Options that are gone\n\n{table.concat(told, "\n")}`)
		ui.say(table.concat(told, "\n\n"))
	end
end

--- Returns what the moderator says are groups of options that are one; none where the debate brought no option, or only a small mind
--- could say.
local function groups(self: app.App): { app.Values }
	local open = app.open_options(self)
	local brought = list.some(open, function(option: session.Option): boolean
		return option.by ~= nil
	end)
	if not brought or #open < FEWEST or app.is_small(self, self.moderator) then
		return {}
	end
	local letters = shape.list({ enum = proposals.open_ids(self) }, 2, #open)
	local value = app.ask_model(self, {
		prompt = "alike",
		vars = { options = open },
		schema = shape.object({ "one" }, {
			one = shape.list(
				shape.object({ "options", "name", "text" }, { options = letters, name = shape.text(2), text = shape.text(3) }),
				0,
				#open // 2
			),
		}),
		persona = self.moderator,
		label = self.t("label.alike"),
		purpose = "council",
		temperature = 0.2,
		small = false,
	})
	return if value ~= nil then value.one else {}
end

--- Makes options one that nobody tells apart by what would be done: recorded, and told to all in a line.
function proposals.unite(self: app.App)
	local told: { string } = {}
	for _, group in groups(self) do
		local ids: { string } = {}
		for _, id in group.options do
			-- One that went into another group is none of this one.
			if table.find(ids, id) == nil and table.find(proposals.open_ids(self), id) ~= nil then
				table.insert(ids, id)
			end
		end
		if #ids > 1 then
			local into = table.remove(ids, 1) :: string
			local name, line = app.to_line(group.name), app.to_line(group.text)
			app.record_event(self, "merged", { into = into, options = json.array(ids), name = name, text = line })
			table.insert(told, self.t("debate.merged", { ids = table.concat(ids, ", "), into = into, name = name, text = line }))
		end
	end
	if #told > 0 then
		app.tell(self, `# Options that are one from now on\n\n{table.concat(told, "\n")}`)
		ui.say(table.concat(told, "\n\n"))
	end
end

return proposals
