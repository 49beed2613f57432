--!strict
--- A session in short, for whoever asks (`/recap`) or comes back to it in a clean terminal: the problem, the turns, the question that
--- is open.

local app = require("./app")
local ledger = require("./ledger")
local session = require("./session")
local stack_trace = require("./stack_trace")
local text = require("@nietz/text")
local translations = require("../common/translations")

local recap = {}

--- How many of the last turns are told, and how much of each text in them.
local MOST_TURNS, MOST_LETTERS = 12, 160
--- How much of the problem is told.
local MOST_OF_PROBLEM = 600

--- Returns a text as one line of Markdown, cut where it is long.
local function in_short(value: string): string
	return text.truncate((string.gsub(text.trim(value), "%s+", " ")), MOST_LETTERS)
end

--- Returns what is known of the session, in its language.
function recap.render(self: app.App): string
	local turns = self.doc.transcript :: { session.Turn }
	local last = turns[#turns]
	local problem = text.truncate(text.trim(stack_trace.shorten(self.doc.problemDescription)), MOST_OF_PROBLEM)
	local lines = { `**{self.t("recap.problem")}** {problem}` }
	local first = math.max(1, #turns - MOST_TURNS)
	if #turns > 1 then
		table.insert(lines, "")
		if first > 1 then
			table.insert(lines, `- {translations.counted(self.t, "recap.earlier", first - 1)}`)
		end
		for index = first, #turns - 1 do
			local turn = turns[index]
			local said = if turn.response == "" then "…" else in_short(turn.response)
			table.insert(lines, `- **{turn.turnNumber}.** {in_short(turn.question)} → {said}`)
		end
	end
	local known = ledger.render(self)
	if known ~= "" then
		table.insert(lines, "")
		table.insert(lines, known)
	end
	if last ~= nil then
		table.insert(lines, "")
		table.insert(lines, `**[{self.t("turn")} {last.turnNumber}]** {last.question}`)
	end
	return table.concat(lines, "\n")
end

return recap
