--!strict
--- The command `judge FILE`: runs the check of replies on its own, for whoever changes a rule. Each line of the file is a reply
--- with its context; each line of the output is a verdict. Lines with a `label` are measured.

local failure = require("../common/failure")
local fenced = require("../common/fenced")
local files = require("@nietz/files")
local json = require("@nietz/json")
local leak_rules = require("./leak_rules")
local list = require("../common/list")
local nietz = require("@nietz")
local task = require("@nietz/task")
local text = require("@nietz/text")
local ui = require("@nietz/ui")
local verifier = require("./verifier")

local judge = {}

--- How many replies the verifier reads side by side.
local SIDE_BY_SIDE = 4

export type Case = { id: string, lang: string?, context: string, reply: string, label: string? }
export type Verdict = { id: string, verdict: "leak" | "ok", rule: string?, reason: string? }

judge.PARAMS = {
	file = {
		type = "string",
		positional = true,
		required = true,
		help = "JSONL with id, lang, context, reply; and label (leak or ok), where it is to be measured",
	},
	only_lang = { type = "string", help = "Only the lines of this language, such as fr" },
	verifier = { type = "boolean", default = true, help = "By the rules alone" },
	verifier_model = { type = "string", help = "The model that reads for leaks [default: the run's, unless it is a local one]" },
	measure = {
		type = "boolean",
		default = false,
		help = "Show recall and precision by the labels, and what was judged wrongly, in place of the verdicts",
	},
} :: { [string]: nietz.Param }

local function text_of(value: unknown): string
	if value == nil or value == json.null then
		return ""
	end
	return if type(value) == "string" then value else json.encode(value)
end

local function read_cases(path: string): { Case }
	local file = files.read(path)
	if file == nil then
		return nietz.fail(`there is no file {path}`, "its path is relative to the workspace")
	end
	local cases: { Case } = {}
	for number, line in text.lines(file.text) do
		if text.trim(line) ~= "" then
			local ok, value = pcall(json.decode, line)
			if not ok or type(value) ~= "table" or type(value.reply) ~= "string" then
				local why = if ok then "it needs id and reply, which are texts" else failure.of(value).message
				return nietz.fail(`{path}:{number}: {why}`, 'such as {"id": "1", "lang": "en", "context": "…", "reply": "…"}')
			end
			table.insert(cases, {
				id = tostring(value.id or number),
				lang = value.lang,
				context = text_of(value.context),
				reply = value.reply,
				label = value.label,
			})
		end
	end
	return cases
end

--- Returns the verdict of the rules alone.
function judge.by_rules(case: Case): Verdict
	local leak = leak_rules.find_leak(case.reply, case.context, nil)
	if leak == nil then
		return { id = case.id, verdict = "ok" }
	end
	return { id = case.id, verdict = "leak", rule = leak.rule, reason = `{leak.reason}: {leak.excerpt}` }
end

--- Returns the verdict of what a session goes by: a hard rule, or the verifier, who is told what the others noticed.
local function by_verifier(case: Case, model: string?): Verdict
	local reading = leak_rules.read(case.reply, case.context, nil)
	local hard = reading.hard
	if hard ~= nil then
		return { id = case.id, verdict = "leak", rule = hard.rule, reason = `{hard.reason}: {hard.excerpt}` }
	end
	local verdict = verifier.judge_reply({
		reply = case.reply,
		context = case.context,
		hints = leak_rules.hints(reading),
		label = "verifying",
		model = model,
	})
	if verdict == nil then
		return { id = case.id, verdict = "leak", rule = "unread", reason = "the verifier said nothing usable, twice: not shown" }
	elseif verdict.leaks then
		return { id = case.id, verdict = "leak", rule = "verifier", reason = verdict.reason }
	end
	return { id = case.id, verdict = "ok", reason = verdict.reason }
end

--- Returns the verdicts on all cases, as a session would reach them with this verifier.
local function all_by_verifier(cases: { Case }, model: string?): { Verdict }
	local verdicts: { Verdict } = {}
	for first = 1, #cases, SIDE_BY_SIDE do
		local branches: { [string]: () -> any } = {}
		for at = first, math.min(first + SIDE_BY_SIDE - 1, #cases) do
			branches[string.format("%06d", at)] = function(): any
				return by_verifier(cases[at], model)
			end
		end
		for name, verdict in task.all(branches) do
			verdicts[tonumber(name) :: number] = verdict
		end
	end
	return verdicts
end

export type Measure = { replies: number, leaks: number, recall: number?, precision: number?, falseAlarms: number?, wrong: { Verdict } }

--- Compares the verdicts with the labels of the cases that have one.
function judge.measure(cases: { Case }, verdicts: { Verdict }): Measure
	local caught, missed, alarms, fine = 0, 0, 0, 0
	local wrong: { Verdict } = json.array({})
	for index, case in cases do
		local leaked = verdicts[index].verdict == "leak"
		if case.label == "leak" or case.label == "ok" then
			if case.label == "leak" then
				caught += if leaked then 1 else 0
				missed += if leaked then 0 else 1
			else
				alarms += if leaked then 1 else 0
				fine += if leaked then 0 else 1
			end
			if leaked ~= (case.label == "leak") then
				table.insert(wrong, verdicts[index])
			end
		end
	end
	local function ratio(part: number, whole: number): number?
		return if whole > 0 then part / whole else nil
	end
	return {
		replies = caught + missed + alarms + fine,
		leaks = caught + missed,
		recall = ratio(caught, caught + missed),
		precision = ratio(caught, caught + alarms),
		falseAlarms = ratio(alarms, alarms + fine),
		wrong = wrong,
	}
end

local function percent(value: number?): string
	return if value then string.format("%.1f%%", value * 100) else "-"
end

function judge.run(ctx: nietz.Context)
	local cases = list.filter(read_cases(ctx.params.file), function(case): boolean
		return ctx.params.only_lang == nil or case.lang == ctx.params.only_lang
	end)
	local verdicts: { Verdict } = {}
	if verifier.is_available(ctx.params.verifier, ctx.params.verifier_model) then
		verdicts = all_by_verifier(cases, ctx.params.verifier_model)
	else
		verdicts = list.map(cases, judge.by_rules)
		for _, verdict in verdicts do
			if ctx.params.verifier then
				verdict.reason = verdict.reason or "by the rules alone: a small model on this machine cannot be a verifier"
			end
		end
	end
	local measured = judge.measure(cases, verdicts)
	local lines: { string } = {}
	if ctx.params.measure then
		local rates = `recall {percent(measured.recall)}, precision {percent(measured.precision)}`
		local all = `{measured.replies} labelled replies, {measured.leaks} of them leaks`
		table.insert(lines, `{all}: {rates}, false alarms {percent(measured.falseAlarms)}`)
		for _, verdict in measured.wrong do
			table.insert(
				lines,
				if verdict.verdict == "leak" then `false alarm {verdict.id}: {verdict.rule}: {verdict.reason}` else `missed {verdict.id}`
			)
		end
	else
		for _, verdict in verdicts do
			table.insert(lines, json.encode(verdict))
		end
	end
	if #lines > 0 then
		ui.say(fenced.block(table.concat(lines, "\n")))
	end
	return { verdicts = json.array(verdicts), measured = measured }
end

return judge
