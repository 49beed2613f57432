--!strict
--- Ways of thinking differently: techniques, another angle, and the small examinations (premortem, spike, security).

local app = require("./app")
local ask = require("./ask")
local context = require("./context")
local ems = require("./ems")
local leader = require("./leader")
local random = require("@nietz/random")
local session = require("./session")
local techniques = require("./techniques")
local text = require("@nietz/text")
local ui = require("@nietz/ui")

local explore = {}

--- From this weight (probability × impact) a risk is to be mitigated.
explore.MITIGATE = 6

local SECURITY = { "auth", "login", "password", "passe", "token", "payment", "paiement", "personal", "rgpd", "gdpr", "secret", "upload", "admin", "permission", "crypt" }

--- Whether the session touches something that an attacker wants.
function explore.touches_security(self: app.App): boolean
	local said = text.fold(self.doc.session.flow_state.topic .. " " .. table.concat(session.asked(self.doc), " "))
	for _, word in SECURITY do
		if string.find(said, word, 1, true) ~= nil then
			return true
		end
	end
	return false
end

local function situation(self: app.App): techniques.Situation
	local s = self.doc.session
	return {
		ems = s.ems,
		phase = s.phase,
		iteration = s.iteration,
		weak = ems.weak(s.flow_state.axes, s.phase),
		history = s.techniques_history,
	}
end

local function record(self: app.App, technique: techniques.Technique, source: string, applied: boolean, reason: string)
	local weak: { string } = {}
	for _, key in if source == "manual" then {} else situation(self).weak do
		if table.find(technique.axes, key) ~= nil then
			table.insert(weak, ems.file_name(key))
		end
	end
	session.technique(self.doc, {
		slug = technique.slug,
		category = technique.category,
		reason = reason,
		applied = applied,
		source = source,
		weak = weak,
	})
end

local function announce(self: app.App, technique: techniques.Technique)
	local words: { [string]: any } = technique :: any
	ui.say(self.t("technique.now", { name = technique.name[self.lang], text = words[self.lang] }))
end

--- Why a technique is proposed, as in the specification: `Clarte 42%`.
local function reason(self: app.App): string
	local weakest = situation(self).weak[1]
	return if weakest then `{ems.file_name(weakest)} {self.doc.session.flow_state.axes[weakest]}%` else `EMS {self.doc.session.ems}`
end

local function use(self: app.App, found: { techniques.Technique }, source: string, why: string)
	self.techniques = found
	for _, technique in found do
		announce(self, technique)
		record(self, technique, source, true, why)
	end
end

local function used(self: app.App): number
	return #self.doc.session.techniques_used
end

--- Before an iteration: chooses a technique by chance or progress, or offers the one that helps the weak axes.
function explore.propose(self: app.App): app.Signal?
	local s = self.doc.session
	if used(self) >= techniques.MOST or #self.techniques > 0 then
		return nil
	end
	local now = situation(self)
	if self.switches.choosing == "random" then
		local technique, state = techniques.random(now, s.random_state or {}, random.choice)
		s.random_state = state
		if technique ~= nil then
			use(self, { technique }, "random", "--random")
		end
		return nil
	elseif self.switches.choosing == "progressive" then
		local technique = techniques.progressive(now, random.choice)
		if technique ~= nil then
			use(self, { technique }, "progressive", `EMS {s.ems}`)
		end
		return nil
	end
	-- Every second iteration: an offer each time is noise.
	if not self.switches.suggest or s.iteration % 2 == 1 or s.ems >= ems.CHECKPOINT then
		return nil
	end
	local found = techniques.suggest(now, random.choice)
	if #found == 0 then
		return nil
	end
	local why = reason(self)
	local lines: { string } = {}
	for _, technique in found do
		local words: { [string]: any } = technique :: any
		table.insert(lines, self.t("technique.offer", { name = technique.name[self.lang], reason = why, text = words[self.lang] }))
		table.insert(lines, "")
	end
	table.insert(lines, self.t("technique.ask"))
	local answer, signal = ask.line(self, {
		id = "technique",
		prompt = table.concat(lines, "\n"),
		options = { { value = "yes", label = self.t("technique.yes") }, { value = "no", label = self.t("technique.no") } },
		closed = true,
		default = "no",
	})
	if answer == "yes" then
		use(self, found, "auto", why)
	elseif answer == "no" then
		for _, technique in found do
			record(self, technique, "auto", false, why)
		end
	end
	return if signal and (signal.go == "again" or signal.go == "next") then nil else signal
end

--- The commands `technique [name]` and `framework name`.
function explore.technique(self: app.App, name: string): app.Signal?
	if name == "" then
		local found = techniques.suggest(situation(self), random.choice)
		if #found == 0 then
			ui.say(self.t("technique.none"))
			return nil
		end
		use(self, found, "manual", reason(self))
		return { go = "again" }
	end
	local technique = techniques.find(text.fold(name))
	if technique == nil then
		local near = text.nearest(text.fold(name), techniques.slugs())
		ui.say(self.t("technique.unknown", { name = name }) .. if near then " " .. self.t("technique.nearest", { name = near }) else "")
		return nil
	end
	use(self, { technique }, "manual", "manual")
	if technique.slug == "premortem" then
		return explore.premortem(self)
	end
	return { go = "again" }
end

--- The command `pivot [angle]`: opens up again from another side.
function explore.pivot(self: app.App, angle: string): app.Signal?
	if angle == "" then
		local answer, signal = ask.line(self, { id = "pivot", prompt = self.t("pivot.ask") })
		if answer == nil then
			return signal
		end
		angle = answer
	end
	if angle ~= "" then
		session.note(self.doc, "notes", angle, "user")
	end
	self.focus = if angle == "" then self.t("pivot.surprise") else angle
	self.doc.session.phase = "divergent"
	app.save(self)
	return { go = "again" }
end

--- The command `dive [subject]`.
function explore.dive(self: app.App, subject: string): app.Signal?
	self.focus = if subject ~= "" then subject else self.doc.session.last_question
	return { go = "again" }
end

local function texts(limit: number): { [string]: any }
	return { type = "string", minLength = 5, maxLength = limit }
end

local function object(properties: { [string]: any }): { [string]: any }
	local required: { string } = {}
	for name in properties do
		table.insert(required, name)
	end
	table.sort(required)
	return { type = "object", additionalProperties = false, required = required, properties = properties }
end

local function list_of(name: string, least: number, most: number, properties: { [string]: any }): { [string]: any }
	return object({ [name] = { type = "array", minItems = least, maxItems = most, items = object(properties) } })
end

--- Imagines the failure and returns the risks, which are recorded; an empty list where the model has none.
function explore.risks(self: app.App): { any }
	local degree = { type = "integer", minimum = 1, maximum = 3 }
	local value = app.think(self, {
		prompt = "premortem",
		vars = context.of(self),
		schema = list_of("risks", 1, 4, { impact = degree, mitigation = texts(160), probability = degree, risk = texts(160) }),
	})
	local state = self.doc.session.flow_state
	local found: { any } = {}
	for _, risk in if value then value.risks else {} do
		table.insert(found, {
			risk = app.line(risk.risk, 200),
			probability = risk.probability,
			impact = risk.impact,
			mitigation = app.line(risk.mitigation, 200),
			iteration = self.doc.session.iteration,
		})
	end
	table.sort(found, function(a: any, b: any): boolean
		local left, right = a.probability * a.impact, b.probability * b.impact
		return if left == right then a.risk < b.risk else left > right
	end)
	for _, risk in found do
		table.insert(state.risks, risk)
	end
	return found
end

--- The command `premortem`.
function explore.premortem(self: app.App): app.Signal?
	if not self.doc.session.flow_state.pinned then
		leader.switch(self, "sparring", "premortem")
	end
	local found = explore.risks(self)
	local lines: { string } = { if #found > 0 then self.t("premortem.title") else self.t("premortem.none"), "" }
	for _, risk in found do
		local weight = risk.probability * risk.impact
		table.insert(lines, self.t("premortem.row", {
			risk = risk.risk,
			probability = risk.probability,
			impact = risk.impact,
			weight = weight,
			flag = if weight >= explore.MITIGATE then self.t("premortem.mitigate") else "",
			mitigation = risk.mitigation,
		}))
	end
	ui.say(table.concat(lines, "\n"))
	app.save(self)
	return nil
end

--- The command `security-check`.
function explore.security(self: app.App): app.Signal?
	local value = app.think(self, {
		prompt = "security",
		vars = context.of(self),
		schema = list_of("threats", 1, 4, { defence = texts(160), threat = texts(160) }),
	})
	local lines: { string } = { self.t("security.title"), "" }
	for _, item in if value then value.threats else {} do
		local threat, defence = app.line(item.threat), app.line(item.defence)
		table.insert(lines, self.t("security.row", { threat = threat, defence = defence }))
		session.note(self.doc, "notes", `{threat} → {defence}`, "security")
	end
	ui.say(table.concat(lines, "\n"))
	app.save(self)
	return nil
end

--- The command `spike [duration] [question]`: what a small experiment would have to show, and the verdict so far.
function explore.spike(self: app.App, argument: string): app.Signal?
	local duration, question = string.match(argument, "^(%d+%s*%a+)%s*(.*)$")
	if duration == nil then
		question = argument
		local answer, signal = ask.line(self, { id = "spike-duration", prompt = self.t("spike.duration"), default = "1d" })
		if answer == nil then
			return signal
		end
		duration = answer
	end
	if question == nil or question == "" then
		local answer, signal = ask.line(self, { id = "spike-question", prompt = self.t("spike.question"), default = self.doc.session.last_question })
		if answer == nil then
			return signal
		end
		question = answer
	end
	local vars = context.of(self)
	vars.duration, vars.question = duration, question
	local value = app.think(self, {
		prompt = "spike",
		vars = vars,
		schema = object({ verdict = { enum = { "GO", "NO-GO", "MORE_RESEARCH" } }, why = texts(240) }),
	})
	local verdict = if value then value.verdict else "MORE_RESEARCH"
	local line = self.t("spike.verdict", {
		verdict = verdict,
		question = question :: string,
		duration = duration :: string,
		why = if value then app.line(value.why) else "—",
	})
	ui.say(line)
	session.note(self.doc, "notes", (string.gsub(line, "%*%*", "")), "spike")
	app.save(self)
	return nil
end

return explore
