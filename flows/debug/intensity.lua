--!strict
--- The three voices, from the mildest to the hardest: asking for the answer goes one up, for the rest of the session.

local app = require("./app")
local personas = require("@nietz/personas")
local ui = require("@nietz/ui")

local intensity = {}

intensity.LADDER = { "socrates", "nietzsche", "zarathustra" }

--- Goes one voice up, and says so. Returns whether there was one.
function intensity.rise(self: app.App): boolean
	local at = table.find(intensity.LADDER, self.intensity) or 1
	local harder = intensity.LADDER[at + 1]
	local name = app.voice(self).name
	if harder == nil then
		ui.say(self.t("intensity.top", { name = name }))
		return false
	end
	self.intensity = harder
	self.doc.escalatedTo = harder
	ui.say(self.t("intensity.rises", { from = name, to = personas.get(harder).name }))
	return true
end

return intensity
