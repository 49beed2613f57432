--!strict
--- NAME: a panel reads a change side by side, what several found becomes one finding, a person may drop some, and the run
--- says no (exit 8) where one at or above `--fail-at` is left. Edit anything here, in `NAME/` and in `personas/`; its tests
--- are in `tests/cassettes/NAME/`, and `nietz test` plays them without a model.

local git = require("@nietz/git")
local json = require("@nietz/json")
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local personas = require("@nietz/personas")
local task = require("@nietz/task")
local template = require("@nietz/template")
local ui = require("@nietz/ui")

local PART = 48_000 -- How many bytes of a change one call reads, as far as hunks allow.
local RANK: { [string]: number } = { nit = 1, minor = 2, major = 3, blocker = 4, never = 5 }
local SIGN = { context = " ", added = "+", deleted = "-" }
local FINDINGS, GROUPS = json.load("./NAME/findings.schema.json"), json.load("./NAME/groups.schema.json")
type Finding = { file: string, line: number, severity: string, why: string, suggestion: string, by: { string } }

--- What a branch brings, or all that is not committed, new files included.
local function change_of(base: string?, head: string): (string, git.Change)
	if base == nil then
		return "what is not committed", { from = "HEAD", to = git.snapshot().commit }
	end
	return `{base}...{head}`, { from = git.merge_base(base, head) or base, to = head }
end

--- Returns a change of any size in parts for one call each, the places `FILE:LINE` in it, and the files that are cut.
local function parts_of(change: git.Change): ({ string }, { [string]: boolean }, { string })
	local parts: { string }, places: { [string]: boolean }, unread: { string } = {}, {}, {}
	repeat
		local page = git.hunks(change)
		for _, file in page.files do
			change.after, places[`{file.path}:0`] = file.path, true
			for _, hunk in file.hunks do
				local out = { `=== {file.path} ({file.kind})` }
				for _, line in hunk.lines do
					table.insert(out, string.format("%6s %s%s", tostring(line.new_line or ""), SIGN[line.kind], line.text))
					places[`{file.path}:{line.new_line or 0}`] = true
				end
				local diff, last = table.concat(out, "\n") .. "\n", parts[#parts]
				local fits = last ~= nil and #last + #diff <= PART
				parts[if fits then #parts else #parts + 1] = if fits then last .. diff else diff
			end
			if file.cut then
				table.insert(unread, file.path)
			end
		end
	until not page.cut
	return parts, places, unread
end

local function review(persona: personas.Persona, what: string, diff: string, places: { [string]: boolean }): { Finding }
	local prompt = template.render("./NAME/prompts/findings.md", { what = what, diff = diff })
	local function check(value: { findings: { Finding } }): string?
		for n, f in value.findings do
			if not places[`{f.file}:{f.line}`] then
				return `/findings/{n - 1}: {f.file}:{f.line} does not stand in the diff`
			end
		end
		return nil
	end
	local reply = llm.chat { persona = persona, prompt = prompt, schema = FINDINGS, check = check }
	for _, finding in reply.value.findings do
		finding.by = json.array { persona.slug }
	end
	return reply.value.findings
end

--- Has a model say which findings are the same: the first of each group takes in the others. Returns what is left.
local function merge(findings: { Finding }): { Finding }
	local left: { Finding }, gone: { [Finding]: boolean } = json.array {}, {}
	local prompt = template.render("./NAME/prompts/merge.md", { findings = findings })
	for _, group in llm.chat({ label = "Merging", prompt = prompt, schema = GROUPS }).value.groups do
		local first: Finding? = findings[group.numbers[1]]
		for _, n in group.numbers do
			local f = findings[n]
			if first and f and f ~= first and f.file == first.file and not gone[f] and not gone[first] then
				gone[f], first.why, first.suggestion = true, group.why, group.suggestion
				first.severity = if RANK[f.severity] > RANK[first.severity] then f.severity else first.severity
				table.move(f.by, 1, #f.by, #first.by + 1, first.by)
			end
		end
	end
	for _, finding in findings do
		if not gone[finding] then
			table.insert(left, finding)
		end
	end
	return left
end

--- Lets a person drop findings until they are done.
local function settle(findings: { Finding })
	local commands: { ui.Command } = {
		{ name = "drop", summary = "drops a finding", number = "N" },
		{ name = "done", summary = "accepts what is left" },
	}
	repeat
		ui.say(template.render("./NAME/prompts/list.md", { findings = findings }))
		local said, command = ui.ask { id = "findings", prompt = "What next?", text = false, commands = commands }
		if command == "drop" and table.remove(findings, tonumber(said)) == nil then
			ui.say("Nothing has changed: there is no such finding.")
		end
	until command == "done"
end

return nietz.flow {
	name = "NAME",
	host_api = 2,
	summary = "A panel reviews a change; what it finds can fail CI",
	params = {
		base = { type = "revision", positional = true, order = 1, help = "Where it began; without it, what is not committed" },
		head = { type = "revision", positional = true, order = 2, default = "HEAD", help = "Where it ends" },
		reviewer = { type = "persona", many = true, max_items = 5, default = { "correctness", "adversary", "maintainer" } },
		fail_at = { type = "string", choices = { "nit", "minor", "major", "blocker", "never" }, default = "major" },
		ci = { type = "boolean", help = "Ask nobody: the findings stand as they are" },
	},
	permissions = { llm = true, git = "read" },
	run = function(ctx)
		local params, calls: { [string]: () -> { Finding } }, order: { string } = ctx.params, {}, {}
		local what, change = change_of(params.base, params.head)
		local parts, places, unread = parts_of(change)
		-- Tasks have names: with another panel, or a longer change, no call is made again.
		for _, slug in params.reviewer do
			for i, part in parts do
				table.insert(order, `{slug}-{i}`)
				calls[`{slug}-{i}`] = function()
					return review(personas.get(slug), what, part, places)
				end
			end
		end
		local found, findings: { Finding }, bad = task.all(calls), json.array {}, 0
		for _, name in order do
			table.move(found[name], 1, #found[name], #findings + 1, findings)
		end
		findings = if #findings > 1 then merge(findings) else findings
		if not params.ci then
			settle(findings)
		end
		for _, finding in findings do
			bad += if RANK[finding.severity] >= RANK[params.fail_at] then 1 else 0
		end
		ui.say(`## Review of {what}\n\n` .. template.render("./NAME/prompts/list.md", { findings = findings }))
		local why = if #unread > 0 then `not all of {table.concat(unread, ", ")} was read, and ` else ""
		nietz.verdict(bad == 0 and #unread == 0, `{why}{bad} of {#findings} findings are at or above {params.fail_at}`)
		return { change = what, findings = findings }
	end,
}
