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

--- What is judged: two texts, or one text by a question.
type Question = { asked: string, one: string, two: string?, question: string? }
--- `verdict` is `one`, `two` or `tie`, and `yes` or `no` by a question; `why` has the judge's reasons in the order of its calls.
type Verdict = { verdict: string, why: { string } }

--- So that it can be read at a glance.
local REASON = 400

local BETTER = shape.object({ "reason", "better" }, {
	reason = shape.text(1, REASON),
	better = { type = "string", enum = { "A", "B", "tie" } },
})
local HOLDS = shape.object({ "reason", "holds" }, { reason = shape.text(1, REASON), holds = { type = "boolean" } })

local function ask(prompt: string, vars: { [string]: string }, schema: llm.Schema): any
	local set_apart: { [string]: string } = {}
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

--- Returns which of two texts is better: what the judge says of both orders alike. Else it is a tie.
local function better(question: Question): Verdict
	local first, second = question.one, question.two :: string
	local there = ask("pair", { asked = question.asked, a = first, b = second }, BETTER)
	local back = ask("pair", { asked = question.asked, a = second, b = first }, BETTER)
	local verdict = if there.better == "A" and back.better == "B"
		then "one"
		elseif there.better == "B" and back.better == "A" then "two"
		else "tie"
	return { verdict = verdict, why = { there.reason, back.reason } }
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
