--!strict
--- The three voices, from the mildest to the hardest. Who asks for the answer gets the next harder one for the rest of the
--- session.

local app = require("./app")
local personas = require("@nietz/personas")
local ui = require("@nietz/ui")

local intensity = {}

intensity.LADDER = { "socrates", "nietzsche", "zarathustra" }

--- Changes to the next harder voice, and says so. Returns whether there is one.
function intensity.raise(self: app.App): boolean
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
