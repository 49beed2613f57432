--!strict
--- What comparisons with a control came to, over all councils of this workspace: one row each, and their sum.

local documents = require("@nietz/documents")
local nietz = require("@nietz")
local session = require("./session")
local text = require("@nietz/text")
local translations = require("../common/translations")
local ui = require("@nietz/ui")

local worth = {}

local VERDICTS = { "council", "equal", "undecided", "control", "none" }

local function number(): session.Values
	return { type = "number", minimum = 0 }
end

worth.COLLECTION = {
	path = ".councils/worth.jsonl",
	format = "jsonl",
	shared = true,
	schema = {
		type = "object",
		required = { "session", "at", "request", "model", "judge", "verdict", "plainVerdict", "tokens" },
		properties = {
			session = { type = "string", unique = true },
			at = { type = "string", format = "date-time" },
			request = { type = "string" },
			model = { type = "string" },
			judge = { type = "string" },
			verdict = { enum = VERDICTS },
			plainVerdict = { enum = VERDICTS },
			tokens = { type = "object", properties = { council = number(), control = number(), plain = number(), judge = number() } },
			cost = { type = "object", properties = { council = number(), control = number(), plain = number() } },
		},
	},
} :: nietz.Collection

local rows = documents.collection("worth")

--- Keeps what one comparison came to.
function worth.keep(doc: session.Values, report: session.Values)
	local cost: { [string]: number } = {}
	for _, arm in { "council", "control", "plain" } do
		local spent = report.spent[arm]
		if spent ~= nil then
			cost[arm] = spent.cost
		end
	end
	rows:append({
		session = doc.sessionId,
		at = doc.updatedAt,
		request = text.truncate(doc.requestText, 120),
		model = report.model,
		judge = report.judge,
		verdict = report.verdict,
		plainVerdict = report.plainVerdict,
		tokens = report.tokens,
		cost = cost,
	})
end

--- Returns a verdict's count in these rows.
local function tally(all: { session.Values }, field: string): { [string]: number }
	local counts: { [string]: number } = {}
	for _, verdict in VERDICTS do
		counts[verdict] = 0
	end
	for _, row in all do
		counts[row[field]] += 1
	end
	return counts
end

local function sum(all: { session.Values }, group: string, arm: string): number
	local total = 0
	for _, row in all do
		total += (row[group] or {})[arm] or 0
	end
	return total
end

--- Shows the sum over all councils that were compared.
function worth.show(t: translations.Translate)
	local all = rows:rows()
	if #all == 0 then
		ui.say(t("worth.nothing"))
		return
	end
	local lines: { string } = { translations.counted(t, "worth.councils", #all), "" }
	for _, arm in { "control", "plain" } do
		local counts = tally(all, if arm == "control" then "verdict" else "plainVerdict")
		table.insert(
			lines,
			`- {t("worth.sum", {
				arm = t(`worth.{arm}`),
				council = counts.council,
				equal = counts.equal,
				undecided = counts.undecided,
				other = counts.control,
				none = counts.none,
			})}`
		)
	end
	local plain_tokens = sum(all, "tokens", "plain")
	local ratio = if plain_tokens > 0 then string.format("%.1f", sum(all, "tokens", "council") / plain_tokens) else "?"
	table.insert(
		lines,
		`- {t("worth.spent", {
			council = sum(all, "tokens", "council"),
			control = sum(all, "tokens", "control"),
			plain = plain_tokens,
			ratio = ratio,
		})}`
	)
	local dollars, plain_dollars = sum(all, "cost", "council"), sum(all, "cost", "plain")
	if plain_dollars > 0 then
		table.insert(
			lines,
			`- {t("worth.dollars", {
				council = string.format("%.3f", dollars),
				plain = string.format("%.3f", plain_dollars),
				ratio = string.format("%.1f", dollars / plain_dollars),
			})}`
		)
	end
	for _, row in all do
		local day = string.sub(row.at, 1, 10)
		table.insert(
			lines,
			`- {day} · {t(`verdict_word.{row.verdict}`)} · {t(`verdict_word.{row.plainVerdict}`)} · {text.truncate(row.request, 50)}`
		)
	end
	ui.say(table.concat(lines, "\n"))
end

return worth
