--!strict
--- The quote at the end of a session.

local app = require("./app")
local quotes = require("@nietz/quotes")
local random = require("@nietz/random")
local ui = require("@nietz/ui")

local farewell = {}

--- Shows a quote that fits how the session ends (`victory`, `perseverance`, `defeat`), in the user's language where there
--- is one. A light session has none.
function farewell.say(self: app.App, context: string)
	if not self.options.quotes then
		return
	end
	local found = quotes.find({ context = context, lang = self.lang })
	if #found == 0 then
		found = quotes.find({ context = context })
	end
	if #found > 0 then
		ui.say(quotes.render(random.choice(found)))
	end
end

return farewell
