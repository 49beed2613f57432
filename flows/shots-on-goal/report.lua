--!strict
--- A session as Markdown that fits a pull request, and its change as a patch: into files that the user names.

local amounts = require("./amounts")
local documents = require("@nietz/documents")
local fenced = require("../common/fenced")
local git = require("@nietz/git")
local leftovers = require("../common/leftovers")
local nietz = require("@nietz")
local parts_table = require("./parts_table")
local progress = require("./progress")
local summary = require("./summary")
local text = require("@nietz/text")
local ui = require("@nietz/ui")

local report = {}

--- How long a report may be, in bytes: what the description of a pull request takes is a little more.
local LONGEST = 60000
--- How many files and things to look at are named.
local MOST_FILES, MOST_THINGS = 100, 50
--- How much of what a model said is shown, in letters.
local LONGEST_SAID = 600

--- The collections of the files that are written, wherever the user says.
report.COLLECTIONS = {
	report_file = { path = "{*}", format = "text", schema = { type = "string" } },
	patch_file = { path = "{*}", format = "text", schema = { type = "string" } },
} :: { [string]: nietz.Collection }

--- Returns a text as it stands in a cell of a table or in a line of a list.
local function inline(value: string): string
	return (string.gsub(string.gsub(value, "%s+", " "), "[|<>]", { ["|"] = "\\|", ["<"] = "&lt;", [">"] = "&gt;" }))
end

local function code(value: string): string
	local longest = 0
	for run in string.gmatch(value, "`+") do
		longest = math.max(longest, #run)
	end
	local fence = string.rep("`", longest + 1)
	local room = if longest > 0 then " " else ""
	return `{fence}{room}{string.gsub(value, "%s+", " ")}{room}{fence}`
end

local function table_lines(head: { string }, rows: { { string } }): string
	local lines = { `| {table.concat(head, " | ")} |`, "|" .. string.rep(" --- |", #head) }
	for _, cells in rows do
		local shown = {}
		for _, cell in cells do
			-- Blanks in front show what is a part of what: a browser drops plain ones.
			table.insert(shown, (string.gsub(inline(cell), "^ +", function(blanks)
				return string.rep("&nbsp;", #blanks)
			end)))
		end
		table.insert(lines, `| {table.concat(shown, " | ")} |`)
	end
	return table.concat(lines, "\n")
end

--- Returns the commands that validate the whole, each with its exit code and its tests.
local function commands_text(checks: summary.Checks): string
	local lines = { parts_table.checks_text(checks) .. ".", "" }
	for _, run in checks.runs do
		local how = if run.exit == nil then "not run" else `exit code {run.exit}`
		local tests = if run.tests ~= nil then `, {amounts.count(run.tests, "test")}` else ""
		table.insert(lines, `- {code(run.command)}: {how}{tests}`)
	end
	return table.concat(lines, "\n")
end

--- Returns what each attempt came to, and what its model said of it.
local function attempts_text(all: summary.Summary): string
	local lines = {}
	for _, attempt in all.rows.attempt do
		local result = all.results[attempt.id]
		local how = if result then result.status else "under way"
		local said = if result then text.truncate(inline(result.status_detail), LONGEST_SAID) else ""
		local mark = progress.mark(if result then how else "open")
		local who = `{mark} goal {attempt.goal_id}, {attempt.attempt_type} {attempt.id} by {attempt.model}`
		table.insert(lines, `- {who}: {string.gsub(how, "_", " ")}{if said ~= "" then `. {said}` else ""}`)
	end
	return table.concat(lines, "\n")
end

--- Returns what the change brings that somebody should look at before it is merged.
local function things_text(from: string, to: string): string?
	local ok, brings = leftovers.try(function()
		return git.brings(from, to)
	end)
	if not ok or #brings.things == 0 then
		return nil
	end
	local lines = {}
	for index = 1, math.min(MOST_THINGS, #brings.things) do
		table.insert(lines, `- {inline(brings.things[index].text)}`)
	end
	if #brings.things > MOST_THINGS or brings.cut then
		table.insert(lines, "- and more")
	end
	return table.concat(lines, "\n")
end

--- Returns what loosened a session: what its commands could do beyond the sandbox.
local function loosened(flags: any): { string }
	local host, said = flags.host or {}, {}
	if host.no_sandbox then
		table.insert(said, "commands ran without a sandbox")
	end
	if host.allow_net then
		table.insert(said, "commands had the network")
	end
	if flags.accept_unvalidated then
		table.insert(said, "a goal without validation counted as reached")
	end
	return said
end

--- Returns the report of a session.
function report.markdown(session: string): string
	local all = summary.read(session)
	local row, root, ended = all.rows.session[1], all.rows.goal[1], all.rows.session_end[1]
	local start, tokens, cost = all.rows.branch[1], summary.totals(all)
	local parts = { `# {inline(progress.first_line(row.initial_goal))}` }
	local status = if ended == nil then "Not ended." elseif ended.final_status == "success" then "Reached." else "Not reached."
	table.insert(parts, `{status} {if ended then inline(ended.status_detail) else ""}`)
	if string.find(text.trim(row.initial_goal), "\n", 1, true) ~= nil then
		table.insert(parts, fenced.block(row.initial_goal, "text"))
	end
	table.insert(parts, "## Validation\n\n" .. commands_text(summary.checks(all, root)))
	local things = if ended and start then things_text(start.parent_commit_sha, ended.commit_sha) else nil
	if things ~= nil then
		table.insert(parts, "## Look at this before you merge it\n\n" .. things)
	end
	table.insert(parts, "## Parts\n\n" .. table_lines(parts_table.HEAD, parts_table.rows(all)))
	local stat = summary.parts(all)[1].stat
	if stat ~= nil then
		table.insert(parts, "## Files\n\n" .. fenced.block(table.concat(parts_table.stat_lines(stat, MOST_FILES), "\n"), "text"))
	end
	table.insert(parts, "## Attempts\n\n" .. attempts_text(all))
	local notes = loosened(row.flags)
	table.insert(notes, `models {row.model_a} and {row.model_b}`)
	table.insert(notes, `{amounts.used(tokens, cost)}{if cost == nil then ", a price is not known" else ""}`)
	table.insert(parts, `Session {session}, for {row.base_branch}: {inline(table.concat(notes, "; "))}.`)
	local whole = table.concat(parts, "\n\n") .. "\n"
	if #whole <= LONGEST then
		return whole
	end
	return text.truncate(whole, LONGEST // 4 * 3) .. `\n\nCut here; all of it: nietz run shots-on-goal show {session}\n`
end

--- Returns the patch from one commit to another, whole; raises where git's own command is needed for it.
local function whole_patch(from: string, to: string): string
	local parts: { string } = {}
	local function take(path: string?)
		local diff = git.diff(from, to, if path then { path = path } else nil)
		if diff.cut and path == nil then
			for _, changed in git.changed(from, to) do
				take(changed)
			end
			return
		end
		local binary = string.find(`\n{diff.patch}`, "\nBinary files ", 1, true) ~= nil
		if diff.cut or binary or string.find(diff.patch, "\u{FFFD}", 1, true) ~= nil then
			nietz.fail(
				`the patch holds what is no text{if path then `: {path}` else ""}, or a file of which too much differs`,
				`git writes it: git diff --binary {string.sub(from, 1, 12)} {string.sub(to, 1, 12)} > FILE`
			)
		end
		table.insert(parts, diff.patch)
	end
	take(nil)
	return table.concat(parts)
end

--- Raises where a file that is to be written is there already, so that this is known before anything is paid for.
function report.require_unused(params: nietz.Values)
	for name, collection in { report = "report_file", patch = "patch_file" } :: { [string]: string } do
		local file = params[name]
		if file == nil then
			continue
		end
		local ok, found = pcall(function(): any
			return documents.collection(collection):load(file)
		end)
		local unreadable = not ok and type(found) == "table" and (found.code == "document-invalid" or found.code == "document-unreadable")
		if not ok and not unreadable then
			error(found, 0)
		elseif unreadable or found ~= nil then
			nietz.usage(`{file} is there already`, "give another name, or remove it")
		end
	end
end

--- Writes the report and the patch of a session into the files that the user named. A patch that cannot be written is said and
--- ends nothing.
function report.write(params: nietz.Values, session: string)
	if params.report ~= nil then
		local path = documents.collection("report_file"):save(report.markdown(session), { key = params.report })
		ui.say(`Report written: \`{path}\``)
	end
	if params.patch == nil then
		return
	end
	local all = summary.read(session)
	local ended, start = all.rows.session_end[1], all.rows.branch[1]
	if ended == nil or start == nil or ended.commit_sha == start.parent_commit_sha then
		ui.say("No patch is written: nothing has changed.")
		return
	end
	local ok, patch: any = pcall(whole_patch, start.parent_commit_sha, ended.commit_sha)
	if ok then
		local path = documents.collection("patch_file"):save(patch, { key = params.patch })
		ui.say(`Patch written: \`{path}\`. Apply it: \`git apply {path}\``)
	elseif type(patch) == "table" and patch.code == "flow-error" then
		ui.say(`No patch is written: {patch.message}. {patch.hint}`)
	else
		error(patch, 0)
	end
end

return report
