--!strict
--- Other angles on the idea: techniques, another angle (`pivot`), going deeper (`dive`). Which technique fits is decided in
--- `techniques.lua`.

local app = require("./app")
local assessments = require("./assessments")
local context = require("./context")
local dialogue = require("./dialogue")
local ems = require("./ems")
local ideation = require("./ideation")
local random = require("@nietz/random")
local session = require("./session")
local techniques = require("./techniques")
local text = require("@nietz/text")
local translations = require("../common/translations")
local ui = require("@nietz/ui")

local angles = {}

local FRAMEWORKS = { "moscow", "5whys", "swot" }

local function current_situation(self: app.App): techniques.Situation
	local s = self.doc.session
	return {
		ems = s.ems,
		phase = s.phase,
		iteration = s.iteration,
		weak = ems.weak_axes(self.doc.nietz.axes, s.phase),
		history = s.techniques_history,
	}
end

local function record_technique(self: app.App, technique: techniques.Technique, source: string, applied: boolean, reason: string)
	local weak: { string } = {}
	local missing: { string } = if source == "manual" then {} else current_situation(self).weak
	for _, key in missing do
		if table.find(technique.axes, key) ~= nil then
			table.insert(weak, ems.file_name(key))
		end
	end
	session.add_technique(self.doc, {
		slug = technique.slug,
		category = technique.category,
		reason = reason,
		applied = applied,
		source = source,
		weak = weak,
	})
end

local function announce(self: app.App, technique: techniques.Technique)
	ui.say(self.t("technique.now", techniques.in_language(technique, self.lang)))
end

--- Returns why a technique is proposed: `Clarte 42%`, as session files have it, or in the user's language where `labels` are
--- given.
local function reason_for(self: app.App, technique: techniques.Technique, labels: { [string]: string }?): string
	local s = self.doc.session
	for _, key in current_situation(self).weak do
		if table.find(technique.axes, key) ~= nil then
			return `{if labels then labels[key] else ems.file_name(key)} {self.doc.nietz.axes[key]}%`
		end
	end
	return `EMS {s.ems}`
end

local function apply_techniques(self: app.App, found: { techniques.Technique }, source: string, why: string?)
	self.techniques = found
	for _, technique in found do
		announce(self, technique)
		record_technique(self, technique, source, true, why or reason_for(self, technique))
	end
end

local function used_count(self: app.App): number
	return #self.doc.session.techniques_used
end

--- Before an iteration: applies a technique by chance or by progress, or offers one that helps the weak axes.
function angles.propose(self: app.App): app.Signal?
	local s = self.doc.session
	if used_count(self) >= techniques.MAX_USED or #self.techniques > 0 then
		return nil
	end
	local now = current_situation(self)
	if self.options.choosing == "random" then
		local technique, state = techniques.pick_random(now, s.random_state or {}, random.choice)
		s.random_state = state
		if technique ~= nil then
			apply_techniques(self, { technique }, "random", "--random")
		end
		return nil
	elseif self.options.choosing == "progressive" then
		local technique = techniques.pick_progressive(now, random.choice)
		if technique ~= nil then
			apply_techniques(self, { technique }, "progressive", `EMS {s.ems}`)
		end
		return nil
	end
	-- Every second iteration: an offer each time is noise.
	if not self.options.suggest or s.iteration % 2 == 1 or s.ems >= ems.CHECKPOINT then
		return nil
	end
	local found = techniques.suggest(now, random.choice)
	if #found == 0 then
		return nil
	end
	local lines: { string } = {}
	local labels = context.axis_labels(self)
	for _, technique in found do
		local words = techniques.in_language(technique, self.lang)
		local reason = reason_for(self, technique, labels)
		table.insert(lines, self.t("technique.offer", { name = words.name, reason = reason, text = words.text }))
		table.insert(lines, "")
	end
	table.insert(lines, self.t("technique.ask"))
	local answer, signal = dialogue.ask(self, {
		id = "technique",
		prompt = table.concat(lines, "\n"),
		options = { { value = "yes", label = self.t("technique.yes") }, { value = "no", label = self.t("technique.no") } },
		closed = true,
		default = "no",
	})
	if answer == "yes" then
		apply_techniques(self, found, "auto")
	elseif answer == "no" then
		for _, technique in found do
			record_technique(self, technique, "auto", false, reason_for(self, technique))
		end
	end
	return if signal and (signal.go == "again" or signal.go == "next") then nil else signal
end

--- The commands `technique [name]` and `framework name`.
function angles.technique(self: app.App, name: string): app.Signal?
	if name == "" then
		local found = techniques.suggest(current_situation(self), random.choice)
		if #found == 0 then
			ui.say(self.t("technique.none"))
			return nil
		end
		apply_techniques(self, found, "manual")
		return { go = "again" }
	end
	local technique = techniques.find(text.fold(name))
	if technique == nil then
		local near = text.nearest(text.fold(name), techniques.slugs())
		ui.say(self.t("technique.unknown", { name = name }) .. if near then " " .. self.t("technique.nearest", { name = near }) else "")
		return nil
	end
	apply_techniques(self, { technique }, "manual", "manual")
	if technique.slug == "premortem" then
		return assessments.premortem(self)
	elseif #(technique.steps or {}) > 0 then
		local signal = ideation.run(self, technique)
		if signal == nil then
			ideation.gather(self)
		end
		return signal
	end
	return { go = "again" }
end

--- The command `framework [name]`.
function angles.framework(self: app.App, name: string): app.Signal?
	if name ~= "" then
		return angles.technique(self, name)
	end
	local options: { dialogue.Option } = {}
	for _, slug in FRAMEWORKS do
		local technique = techniques.find(slug) :: techniques.Technique
		table.insert(options, { value = slug, label = translations.pick(technique.name, self.lang) })
	end
	local chosen, signal = dialogue.choose(self, "framework", self.t("technique.which"), options, FRAMEWORKS[1])
	return if chosen ~= nil then angles.technique(self, chosen) else signal
end

--- The command `pivot [angle]`: opens up again from another side.
function angles.pivot(self: app.App, angle: string): app.Signal?
	if angle == "" then
		local answer, signal = dialogue.ask(self, { id = "pivot", prompt = self.t("pivot.ask") })
		if answer == nil then
			return signal
		end
		angle = answer
	end
	if angle ~= "" then
		session.add_note(self.doc, angle, "user")
	end
	self.focus = if angle == "" then self.t("pivot.surprise") else angle
	self.doc.session.phase = "divergent"
	app.save(self)
	return { go = "again" }
end

--- The command `dive [subject]`.
function angles.dive(self: app.App, subject: string): app.Signal?
	self.focus = if subject ~= "" then subject else self.doc.session.last_question
	return { go = "again" }
end

return angles
