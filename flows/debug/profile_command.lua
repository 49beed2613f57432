--!strict
--- The command `profile`: how the developer's debugging grows, over all sessions.

local intensity = require("./intensity")
local lang = require("./lang")
local nietz = require("@nietz")
local period = require("./period")
local profile = require("./profile")
local show = require("./show")
local ui = require("@nietz/ui")

local profile_command = {}

local PARAMS: { [string]: nietz.Param } = {
	outcome = { type = "string", choices = { "solved", "abandoned" }, help = "Only sessions that ended so" },
	all = { type = "boolean", default = false, help = "Over all folders in which you were questioned, and not this one alone" },
	intensity = { type = "string", choices = intensity.LADDER, help = "Only sessions that began with this voice" },
}
for name, param in period.PARAMS do
	PARAMS[name] = param
end

profile_command.COMMAND = {
	summary = "Shows how your debugging grows, over all sessions of this folder, or of all (--all)",
	reads_only = true,
	params = PARAMS,
	run = function(ctx: nietz.Context)
		local code = lang.code(ctx.lang)
		local found = profile.compute(ctx.params :: any)
		ui.say(show.profile(code, lang.translator(code), found, false))
		return found
	end,
} :: nietz.Command

return profile_command
