--!strict
--- How options change in the debate: whoever sits in it can add one, amend one, or merge several into one. What is proposed is a
--- new option with a letter of its own, for which its author and, from the next cycle on, anybody can stand: nobody's position is
--- changed by another one's words. An option that became part of another, and for which nobody stands any more, is gone.

local app = require("./app")
local json = require("@nietz/json")
local list = require("../common/list")
local session = require("./session")
local shape = require("../common/shape")
local similarity = require("../common/similarity")

local proposals = {}

--- The stance of whoever stands for what they propose.
proposals.STANCE = "proposal"

local LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
--- Two proposals that share more than this are one.
local SAME = 0.85

--- Returns the schema of what a persona proposes.
function proposals.schema(self: app.App): shape.Shape
	local ids = list.map(app.open_options(self), function(option: session.Option): string
		return option.id
	end)
	return shape.list(
		shape.object({ "what", "options", "text" }, {
			what = { enum = { "add", "amend", "merge" } },
			options = shape.list({ enum = ids }, 0, #ids),
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

--- Returns the letter of the next option.
local function next_letter(self: app.App, more: number): string
	local at = #self.doc.metadata.options + more
	return if at <= #LETTERS then string.sub(LETTERS, at, at) else `Z{at - #LETTERS}`
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
					id = next_letter(self, #new + 1),
					text = line,
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

--- Records which options are gone: those that became part of another for which somebody stands, and for which nobody does.
function proposals.close(self: app.App, positions: { { name: string, option: string, confidence: number } })
	local stood: { [string]: boolean } = {}
	for _, position in positions do
		stood[position.option] = true
	end
	local gone: { string } = {}
	for _, option in app.open_options(self) do
		for _, id in option.from or {} :: { string } do
			local part = list.find(app.open_options(self), function(other: session.Option): boolean
				return other.id == id
			end)
			if stood[option.id] and part ~= nil and not stood[id] and table.find(gone, id) == nil then
				table.insert(gone, id)
			end
		end
	end
	if #gone > 0 then
		app.record_event(self, "gone", { options = json.array(gone) })
	end
end

return proposals
