--!strict
--- The command that proves a goal where all that validates it passes already: the user's own by `--done-when`, or one that a
--- model proposes and the user agrees to.

local ask = require("../common/ask")
local command_words = require("../common/command_words")
local git = require("@nietz/git")
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local programs = require("../common/programs")
local repo_listing = require("../common/repo_listing")
local shape = require("../common/shape")
local template = require("@nietz/template")
local ui = require("@nietz/ui")
local validate = require("./validate")
local workplace = require("../common/workplace")

local proof = {}

--- How often a model is asked for a command.
local PROPOSALS = 3
--- The longest command, in letters.
local LONGEST = 500

local COMMAND = shape.object({ "why", "command" }, { why = shape.text(1, 500), command = shape.text(1, LONGEST) })

--- What proposals have used.
export type Used = { tokens: number, cost: number? }

--- Runs a command on what the session starts from; returns its exit code.
local function try(params: nietz.Values, place: workplace.Workplace, command: string): number
	local validation = place.validation :: workplace.Validation
	validation.tree:restore()
	local given = programs.resolve(params, command) :: git.Command
	given.seconds, given.repeatable = params.validation_seconds, true
	ui.status(`before the first change: {command}`)
	local ran = workplace.exec(place, validation.tree, given, { keep = false })
	ui.status("")
	return validate.read(place, validation.tree, ran).exit
end

--- Returns why a command cannot prove the goal, or nil.
local function objection(params: nietz.Values, place: workplace.Workplace, command: string): string?
	local exit = try(params, place, command)
	if exit == 0 then
		return `\`{command}\` passes already`
	elseif exit == 127 or exit == 126 then
		return `\`{command}\` cannot be run here (exit code {exit})`
	end
	return nil
end

--- Programs that run the script that is their first argument.
local INTERPRETERS = { "sh", "bash", "dash", "zsh", "python", "python3", "node", "ruby", "perl", "php", "lua", "Rscript" }

--- Returns the scripts that commands run. Those are protected; what else a proof names, it looks at, and that is to change.
function proof.scripts(commands: { string }): { string }
	local scripts = {}
	for _, command in commands do
		local words = command_words.split(command)
		local first = if words ~= nil then words[1] else nil
		if words == nil or first == nil then
			continue
		end
		if string.find(first, "/", 1, true) ~= nil then
			table.insert(scripts, first)
		elseif table.find(INTERPRETERS, first) ~= nil and words[2] ~= nil then
			table.insert(scripts, words[2])
		end
	end
	return scripts
end

--- Has a model propose a command that fails now; returns it with its reason, or nil.
local function propose(params: nietz.Values, place: workplace.Workplace, used: Used): { command: string, why: string }?
	local refused: { string } = {}
	for _ = 1, PROPOSALS do
		local value, reply = ask.value({
			model = llm.model(params.model_a),
			prompt = template.render("./prompts/done_when.md", {
				goal = params.goal,
				layout = repo_listing.render(place.start),
				steps = params.validate,
				history = refused,
			}),
			schema = COMMAND,
			label = "a proof of the goal",
		})
		if reply ~= nil then
			used.tokens += reply.usage.input + reply.usage.output
			used.cost = if used.cost and reply.cost then used.cost + reply.cost else nil
		end
		if value ~= nil then
			local why = objection(params, place, value.command)
			if why == nil then
				return value
			end
			table.insert(refused, why)
		end
	end
	return nil
end

--- Returns the command that the user agrees to as the proof of the goal; it fails now. Ends the session where nobody can be
--- asked, or a command of that kind cannot be run.
function proof.find(params: nietz.Values, place: workplace.Workplace, run: string, used: Used): string
	if not params.shell or not ui.attended() then
		workplace.finish(place)
		nietz.usage(
			`what validates passes before anything is changed, so it cannot show that the goal is reached: \`{table.concat(
				params.validate,
				"`, `"
			)}\``,
			'--done-when CMD gives a command that fails now and passes when the goal is reached, such as "! grep -rq chrono src"; --accept-unvalidated takes the models\' word'
		)
	end
	ui.say("What validates passes before anything is changed, so it cannot show that the goal is reached. A model proposes what can.")
	local proposed = propose(params, place, used)
	local question = "Which command fails now, and exits with 0 when the goal is reached?"
	local prompt = if proposed ~= nil
		then `{proposed.why}\n\n\`\`\`\n{proposed.command}\n\`\`\`\n\nIt fails now. Enter takes it.\n\n{question}`
		else question
	while true do
		local command = ui.ask({ id = "done-when", prompt = prompt, default = if proposed then proposed.command else nil })
		if proposed ~= nil and command == proposed.command then
			return command
		end
		local why = objection(params, place, command)
		if why == nil then
			return command
		end
		ui.say(`{why}: it must fail now.`)
	end
end

return proof
