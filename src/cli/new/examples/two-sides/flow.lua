--!strict
--- NAME: looks at a question from two sides, and says what decides it. This is an example to change: edit anything here
--- or in `NAME/prompts/`, and run it again. Its test is `tests/cassettes/NAME/run.jsonl`: `nietz test` plays it, and after
--- a change `nietz test --record` records it anew with your model.

local llm = require("@nietz/llm")
local nietz = require("@nietz")
local task = require("@nietz/task")
local template = require("@nietz/template")
local ui = require("@nietz/ui")

--- Argues one side. A prompt is a file beside the flow; a name that it uses and is not given here is an error.
local function argue(side: string, question: string): string
	local prompt = template.render("./NAME/prompts/side.md", { side = side, question = question })
	return llm.chat { prompt = prompt }.text
end

return nietz.flow {
	name = "NAME",
	host_api = 2,
	summary = "Looks at a question from two sides and says what decides it",
	-- Each param is an option: see `nietz run NAME --help`.
	params = {
		question = { type = "string", positional = true, default = "Tabs or spaces?", help = "What to look at" },
	},
	-- What is not declared here is refused. There are `files`, `git` and `exec`, too.
	permissions = { llm = true },
	run = function(ctx)
		local question = ctx.params.question
		-- Side by side. Kill this run at any time: `nietz resume` goes on, and no finished call is paid for again.
		local sides = task.all {
			first = function()
				return argue("what speaks for the first answer that comes to mind", question)
			end,
			second = function()
				return argue("what speaks against it", question)
			end,
		}
		-- With a schema, the reply is a value that fits it.
		local verdict = llm.chat({
			prompt = template.render("./NAME/prompts/verdict.md", {
				question = question,
				first = sides.first,
				second = sides.second,
			}),
			schema = {
				type = "object",
				required = { "decides", "next_step" },
				additionalProperties = false,
				properties = { decides = { type = "string" }, next_step = { type = "string" } },
			},
		}).value
		ui.say(`**What decides it:** {verdict.decides}\n\n**Next step:** {verdict.next_step}`)
		-- The result of the run: `--json` prints it.
		return verdict
	end,
}
