--!strict
-- A flow with commands of its own.
local nietz = require("@nietz")

local function deep()
	error("it went wrong")
end

return nietz.flow {
	name = "commands",
	summary = "Has commands",
	params = { loud = { type = "boolean", short = "l", help = "Say it loud" } },
	commands = {
		count = {
			summary = "Count up",
			params = {
				to = { type = "integer", positional = true, required = true, help = "How far" },
				style = { type = "string", choices = { "roman", "arabic" }, default = "arabic", help = "Digits" },
			},
			run = function(ctx)
				return ctx.params.to
			end,
		},
		fail = {
			summary = "Fail",
			run = function()
				deep()
			end,
		},
	},
	run = function(ctx)
		return ctx.params.loud
	end,
}
