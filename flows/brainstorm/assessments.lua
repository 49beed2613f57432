--!strict
--- Assessments of the idea, each one model call: how it could fail (`premortem`), who would attack it (`security-check`), what
--- an experiment would show (`spike`).

local app = require("./app")
local context = require("./context")
local dialogue = require("./dialogue")
local leader = require("./leader")
local list = require("../common/list")
local session = require("./session")
local shape = require("../common/shape")
local text = require("@nietz/text")
local ui = require("@nietz/ui")

local assessments = {}

--- From this weight (probability × impact) on, a risk must be mitigated.
assessments.MITIGATE = 6

local SECURITY_WORDS = {
	"auth",
	"login",
	"password",
	"passe",
	"token",
	"payment",
	"paiement",
	"personal",
	"rgpd",
	"gdpr",
	"secret",
	"upload",
	"admin",
	"permission",
	"crypt",
}

--- Returns the shape of a sentence: a small mind is held to `most` letters.
local function sentence(self: app.App, most: number): shape.Shape
	return if self.mind == "small" then shape.text(5, most) else shape.text(5)
end

--- Returns such a sentence as one line.
local function whole(self: app.App, value: string, most: number): string
	return if self.mind == "small" then app.to_whole_line(value, most) else text.trim((string.gsub(value, "%s+", " ")))
end

--- Returns the shape of a short list, with what is thought of first in front.
local function ordered(name: string, names: { string }, members: { [string]: shape.Shape }): shape.Shape
	return shape.object({ name }, { [name] = shape.list(shape.object(names, members), 1, 4) })
end

--- Whether the session touches something that an attacker wants.
function assessments.touches_security(self: app.App): boolean
	local said = text.fold(self.doc.nietz.topic .. " " .. table.concat(session.asked_questions(self.doc), " "))
	return list.some(SECURITY_WORDS, function(word): boolean
		return string.find(said, word, 1, true) ~= nil
	end)
end

--- Imagines the failure and returns the risks, which are recorded; an empty list where the model has none.
function assessments.find_risks(self: app.App): { session.Risk }
	local degree, line = shape.integer(1, 3), sentence(self, 160)
	local value = app.ask_model(self, {
		prompt = "premortem",
		plain = self.mind == "large",
		role = "examiner",
		vars = context.prompt_vars(self),
		-- The fault before its cure: nobody can mend what they have not named yet.
		schema = ordered("risks", { "risk", "probability", "impact", "mitigation" }, {
			impact = degree,
			mitigation = line,
			probability = degree,
			risk = line,
		}),
	})
	local state = self.doc.nietz
	local found: { session.Risk } = {}
	for _, risk in if value then value.risks else {} do
		table.insert(found, {
			risk = whole(self, risk.risk, 160),
			probability = risk.probability,
			impact = risk.impact,
			mitigation = whole(self, risk.mitigation, 160),
			iteration = session.turn(self.doc),
		})
	end
	table.sort(found, function(one: session.Risk, other: session.Risk): boolean
		local left, right = one.probability * one.impact, other.probability * other.impact
		return if left == right then one.risk < other.risk else left > right
	end)
	for _, risk in found do
		table.insert(state.risks, risk)
	end
	return found
end

--- The command `premortem`.
function assessments.premortem(self: app.App): app.Signal?
	if not self.doc.nietz.pinned then
		leader.switch(self, "sparring", "premortem")
	end
	local found = assessments.find_risks(self)
	if #found == 0 then
		return nil
	end
	local lines: { string } = { self.t("premortem.title"), "" }
	for _, risk in found do
		local weight = risk.probability * risk.impact
		table.insert(
			lines,
			self.t("premortem.row", {
				risk = risk.risk,
				probability = risk.probability,
				impact = risk.impact,
				weight = weight,
				flag = if weight >= assessments.MITIGATE then self.t("premortem.mitigate") else "",
				mitigation = risk.mitigation,
			})
		)
	end
	ui.say(table.concat(lines, "\n"))
	app.save(self)
	return nil
end

--- The command `security-check`.
function assessments.security(self: app.App): app.Signal?
	local value = app.ask_model(self, {
		prompt = "security",
		plain = self.mind == "large",
		role = "examiner",
		vars = context.prompt_vars(self),
		schema = ordered("threats", { "threat", "defence" }, { defence = sentence(self, 160), threat = sentence(self, 160) }),
	})
	if value == nil then
		return nil
	end
	local lines: { string } = { self.t("security.title"), "" }
	for _, item in value.threats do
		local threat, defence = whole(self, item.threat, 160), whole(self, item.defence, 160)
		table.insert(lines, self.t("security.row", { threat = threat, defence = defence }))
		session.add_note(self.doc, `{threat} → {defence}`, "security")
	end
	ui.say(table.concat(lines, "\n"))
	app.save(self)
	return nil
end

--- The command `spike [duration] [question]`: what a small experiment would have to show, and the verdict so far.
function assessments.spike(self: app.App, argument: string): app.Signal?
	local duration, question = string.match(argument, "^(%d+%s*%a+)%s*(.*)$")
	if duration == nil then
		question = argument
		local answer, signal = dialogue.ask(self, { id = "spike-duration", prompt = self.t("spike.duration"), default = "1d" })
		if answer == nil then
			return signal
		end
		duration = answer
	end
	if question == nil or question == "" then
		local answer, signal =
			dialogue.ask(self, { id = "spike-question", prompt = self.t("spike.question"), default = self.doc.session.last_question })
		if answer == nil then
			return signal
		end
		question = answer
	end
	local vars = context.prompt_vars(self)
	vars.duration, vars.question = duration, question
	local value = app.ask_model(self, {
		prompt = "spike",
		plain = self.mind == "large",
		role = "examiner",
		vars = vars,
		schema = shape.object({ "why", "verdict" }, { verdict = { enum = { "GO", "NO-GO", "MORE_RESEARCH" } }, why = sentence(self, 240) }),
	})
	if value == nil then
		return nil
	end
	local line = self.t("spike.verdict", {
		verdict = value.verdict,
		question = question :: string,
		duration = duration :: string,
		why = whole(self, value.why, 240),
	})
	ui.say(line)
	session.add_note(self.doc, (string.gsub(line, "%*%*", "")), "spike")
	app.save(self)
	return nil
end

return assessments
