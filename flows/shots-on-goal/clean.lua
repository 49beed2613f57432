--!strict
--- The command `clean`: removes the branches and worktrees that sessions have left. The record stays.

local amounts = require("./amounts")
local git = require("@nietz/git")
local nietz = require("@nietz")
local record = require("./record")
local ui = require("@nietz/ui")

local clean = {}

clean.PARAMS = {
	sessions = { type = "string", many = true, default = {}, positional = true, help = "Only these sessions [default: all that are over]" },
	all = { type = "boolean", default = false, help = "Remove results that are not merged, too" },
	yes = { type = "boolean", default = false, help = "Ask nothing" },
} :: { [string]: nietz.Param }

--- What is to be removed of a session, and what stays, with the reason.
type Plan = { session: string, branches: { string }, worktrees: { string }, kept: { string } }

--- Whether something that begins with a session's name belongs to another session, whose name goes on in the same way.
local function is_of_another(rest: string, session: string, known: { string }): boolean
	for _, other in known do
		if #other > #session and string.sub(other, 1, #session + 1) == `{session}-` then
			local of_other = string.sub(other, #session + 2)
			if rest == of_other or string.sub(rest, 1, #of_other + 1) == `{of_other}-` then
				return true
			end
		end
	end
	return false
end

--- Returns what there is to remove of a session.
local function plan(session: string, head: git.Head, known: { string }, all: boolean): Plan
	local left = git.remains(session)
	local found: Plan = { session = session, branches = {}, worktrees = {}, kept = {} }
	local ended = record.rows(session, "session_end")[1]
	for _, branch in left.branches do
		-- Behind `nietz/`, the session's name and a hyphen.
		local rest = string.sub(branch, #session + 8)
		if rest ~= "" and is_of_another(rest, session, known) then
			continue
		end
		local commit = git.commit_of(branch)
		if branch == head.branch then
			table.insert(found.kept, `{branch}: it is checked out`)
		elseif
			not all
			and ended ~= nil
			and ended.final_status == "success"
			and commit == ended.commit_sha
			and (rest == "" or rest == "squashed")
			and git.merge_base(commit :: string, head.commit) ~= commit
		then
			table.insert(found.kept, `{branch}: the result, which is not merged into what is checked out; --all removes it`)
		else
			table.insert(found.branches, branch)
		end
	end
	for _, name in left.worktrees do
		if not is_of_another(name, session, known) then
			table.insert(found.worktrees, name)
		end
	end
	return found
end

--- Returns the sessions to look at: those that were named, or all that are over.
local function chosen(named: { string }): ({ string }, { string }, { string })
	local all, over, open = {}, {}, {}
	for _, found in record.sessions() do
		table.insert(all, found.session)
		local ended = #record.rows(found.session, "session_end") > 0
		table.insert(if ended then over else open, found.session)
	end
	for _, session in named do
		if table.find(all, session) == nil then
			nietz.usage(`there is no session {session}`, "nietz run shots-on-goal list")
		end
	end
	return all, if #named > 0 then named else over, if #named > 0 then {} else open
end

local function lines_of(plans: { Plan }, open: { string }): { string }
	local lines = {}
	for _, found in plans do
		for _, branch in found.branches do
			table.insert(lines, `{found.session}  branch    {branch}`)
		end
		for _, name in found.worktrees do
			table.insert(lines, `{found.session}  worktree  {name}`)
		end
		for _, why in found.kept do
			table.insert(lines, `{found.session}  stays     {why}`)
		end
	end
	for _, session in open do
		table.insert(lines, `{session}  stays     not over: nietz resume {session}, or name it here to remove what it has made`)
	end
	return lines
end

--- Lists what is there, asks, and removes it.
function clean.run(ctx: nietz.Context)
	local head = git.head()
	local known, sessions, open = chosen(ctx.params.sessions)
	local plans, branches, worktrees = {}, 0, 0
	for _, session in sessions do
		local found = plan(session, head, known, ctx.params.all)
		table.insert(plans, found)
		branches += #found.branches
		worktrees += #found.worktrees
	end
	local lines = lines_of(plans, open)
	if #lines > 0 then
		ui.say("```\n" .. table.concat(lines, "\n") .. "\n```")
	end
	local what = `{branches} branch{if branches == 1 then "" else "es"} and {amounts.count(worktrees, "worktree")}`
	if branches + worktrees == 0 then
		ui.say("There is nothing to remove.")
		return { branches = 0, worktrees = 0 }
	end
	if not ctx.params.yes then
		if not ui.attended() then
			ui.say(`Nothing is removed: nobody is there to ask. --yes removes {what}.`)
			return { branches = 0, worktrees = 0 }
		end
		if not ui.confirm({ id = "clean", prompt = `Remove {what}? What is on no other branch is lost.`, default = false }) then
			return { branches = 0, worktrees = 0 }
		end
	end
	for _, found in plans do
		-- A branch that is checked out in a worktree goes after it.
		for _, name in found.worktrees do
			git.discard(found.session, name)
		end
		for _, branch in found.branches do
			git.delete_branch(branch)
		end
	end
	ui.say(`Removed {what}. The record stays: nietz run shots-on-goal list`)
	return { branches = branches, worktrees = worktrees }
end

return clean
