--!strict
--- A session for whoever asks (`/recap`) or comes back to it in a clean terminal: the problem and the question that is open, then the
--- turns and what is known. Nothing that was said is cut; of a pasted trace, the frames in other people's code are left out.

local app = require("./app")
local ledger = require("./ledger")
local session = require("./session")
local stack_trace = require("./stack_trace")
local text = require("@nietz/text")
local translations = require("../common/translations")

local recap = {}

--- How many of the last turns are told.
local MOST_TURNS = 12

--- Returns a text as a part of a list: its lines stand below each other, in place.
local function indented(value: string): string
	local plain = string.gsub(text.trim(stack_trace.shorten(value)), "\n%s*\n", "\n")
	return (string.gsub(plain, "\n", "\n  "))
end

--- Returns what is known of the session, in its language.
function recap.render(self: app.App): string
	local turns = self.doc.transcript :: { session.Turn }
	local last = turns[#turns]
	local lines = { `**{self.t("recap.problem")}** {text.trim(stack_trace.shorten(self.doc.problemDescription))}` }
	if last ~= nil then
		table.insert(lines, `\n**[{self.t("turn")} {last.turnNumber}]** {last.question}`)
	end
	local first = math.max(1, #turns - MOST_TURNS)
	if #turns > 1 then
		table.insert(lines, `\n**{self.t("recap.before")}**\n`)
		if first > 1 then
			table.insert(lines, `- {translations.counted(self.t, "recap.earlier", first - 1)}`)
		end
		for index = first, #turns - 1 do
			local turn = turns[index]
			local said = if turn.response == "" then "…" else indented(turn.response)
			table.insert(lines, `- **{turn.turnNumber}.** {indented(turn.question)} → {said}`)
		end
	end
	local known = ledger.render(self)
	if known ~= "" then
		table.insert(lines, `\n{known}`)
	end
	return table.concat(lines, "\n")
end

return recap
