--!strict
--- Judge: what `nietz compare` asks the model that the user names: which of two texts is the better one, not knowing which model
--- wrote which, and whether what came out is as a flow says it must be. `nietz compare` runs it; it is no mode of its own.

local fenced = require("../common/fenced")
local json = require("@nietz/json")
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local shape = require("../common/shape")
local task = require("@nietz/task")
local template = require("@nietz/template")

--- What is judged: two texts, or one text by a question. `parts` has the names of the parts that two texts have, where there are
--- several.
type Question = { asked: string, one: string, two: string?, question: string?, parts: { string }? }
--- `verdict` is `one`, `two` or `tie`, and `yes` or `no` by a question; `why` has the judge's reasons in the order of its calls, and
--- `parts` what it says of each part.
type Verdict = { verdict: string, why: { string }, parts: { [string]: string }? }

--- So that it can be read at a glance.
local REASON = 400

local WHICH: llm.Schema = { type = "string", enum = { "A", "B", "tie" } }
local HOLDS = shape.object({ "reason", "holds" }, { reason = shape.text(1, REASON), holds = { type = "boolean" } })

local function ask(prompt: string, vars: { [string]: string }, schema: llm.Schema, parts: { string }?): any
	local set_apart: { [string]: any } = { parts = parts or json.array({}) }
	for name, words in vars do
		set_apart[name] = fenced.block(words)
	end
	local reply = llm.chat({
		system = template.render("./prompts/judge.md", {}),
		prompt = template.render(`./prompts/{prompt}.md`, set_apart),
		schema = schema,
		label = "judge",
	})
	return reply.value
end

--- Returns the schema of what is said of two texts: of each part first, if there are several.
local function better_of(parts: { string }): llm.Schema
	if #parts == 0 then
		return shape.object({ "reason", "better" }, { reason = shape.text(1, REASON), better = WHICH })
	end
	local each: { [string]: llm.Schema } = {}
	for _, name in parts do
		each[name] = WHICH
	end
	return shape.object(
		{ "reason", "parts", "better" },
		{ reason = shape.text(1, REASON), parts = shape.object(parts, each), better = WHICH }
	)
end

--- Returns what the judge says of both orders alike. Else it is a tie.
local function agreed(there: string, back: string): string
	return if there == "A" and back == "B" then "one" elseif there == "B" and back == "A" then "two" else "tie"
end

--- Returns which of two texts is better.
local function better(question: Question): Verdict
	local first, second = question.one, question.two :: string
	local parts: { string } = question.parts or {}
	local schema = better_of(parts)
	local there = ask("pair", { asked = question.asked, a = first, b = second }, schema, parts)
	local back = ask("pair", { asked = question.asked, a = second, b = first }, schema, parts)
	local verdict: Verdict = { verdict = agreed(there.better, back.better), why = { there.reason, back.reason } }
	if #parts > 0 then
		local each: { [string]: string } = {}
		for _, name in parts do
			each[name] = agreed(there.parts[name], back.parts[name])
		end
		verdict.parts = each
	end
	return verdict
end

local function judge(question: Question): Verdict
	if question.two ~= nil then
		return better(question)
	end
	local words = { asked = question.asked, text = question.one, question = question.question :: string }
	local reply = ask("check", words, HOLDS)
	return { verdict = if reply.holds then "yes" else "no", why = { reply.reason } }
end

return nietz.flow({
	name = "judge",
	host_api = 2,
	summary = "Judges texts for `nietz compare`",
	params = {
		questions = {
			type = "string",
			positional = true,
			required = true,
			help = "What is judged: a list as JSON, which `nietz compare` makes",
		},
	},
	permissions = { llm = true },
	run = function(ctx: nietz.Context): any
		local branches: { [string]: () -> Verdict } = {}
		local questions: { Question } = json.decode(ctx.params.questions)
		for number, question in questions do
			branches[tostring(number)] = function(): Verdict
				return judge(question)
			end
		end
		local judged = task.all(branches)
		local verdicts: { Verdict } = json.array({})
		for number in questions do
			table.insert(verdicts, judged[tostring(number)])
		end
		return verdicts
	end,
})
