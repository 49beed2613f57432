--!strict
-- Each kind of effect that takes its time, in one branch or in three side by side, so that a run can be ended in each.
local clock = require("@nietz/clock")
local documents = require("@nietz/documents")
local files = require("@nietz/files")
local git = require("@nietz/git")
local llm = require("@nietz/llm")
local nietz = require("@nietz")
local random = require("@nietz/random")
local task = require("@nietz/task")
local ui = require("@nietz/ui")

local saved = documents.collection("saved")
local rows = documents.collection("rows")
local doomed = documents.collection("doomed")

local function work(ctx, name)
	return function()
		local start = git.head().commit
		local branch = `nietz/{ctx.run}-{name}`
		local said = llm.chat({ prompt = "say " .. name }).text
		git.branch(branch, start)
		git.branch(branch .. "-into", start)
		local tree = git.worktree({ name = name, branch = branch })
		tree:write(`new/{name}.txt`, said .. "\n")
		tree:replace("a.txt", "one", name)
		local again = tree:exec({ shell = ctx.params.again, seconds = 50, repeatable = true })
		local ok, once: any = pcall(tree.exec, tree, { shell = ctx.params.once, seconds = 50 })
		local commit = tree:commit("work of " .. name).commit
		tree:restore()
		local merged = git.merge({ from = branch, into = branch .. "-into", message = "merge " .. name })
		saved:save({ slug = name, text = said, at = clock.now(), id = random.uuid() })
		rows:append({ what = git.diff(start, commit).patch }, { slug = name })
		rows:append({ what = (files.read("a.txt") :: files.File).text }, { slug = name })
		doomed:delete(name)
		ui.say("done with " .. name)
		local sure = ui.confirm({ id = "sure-" .. name, prompt = "Sure?" })
		tree:remove()
		return {
			said = llm.chat({ prompt = `sum {name} up` }).text,
			again = again.output,
			once = if ok then once.output else once.code,
			commits = { commit, merged.commit :: string },
			rows = #rows:rows({ slug = name }),
			saved = saved:load(name),
			sure = sure,
		}
	end
end

return nietz.flow({
	name = "signals",
	summary = "Does what takes its time",
	params = {
		branches = { type = "integer", default = 1 },
		again = { type = "string", required = true },
		once = { type = "string", required = true },
	},
	permissions = { llm = true, git = true, files = true, exec = { "{again}", "{once}" } },
	collections = {
		saved = { path = "saved/{slug}.yaml", schema = { type = "object" } },
		rows = { path = "rows/{slug}.jsonl", schema = { type = "object" } },
		doomed = { path = "doomed/{slug}.yaml", schema = { type = "object" } },
	},
	run = function(ctx)
		local branches = {}
		local names: { string } = if ctx.params.branches == 1 then { "b" } else { "a", "b", "c" }
		for _, name in names do
			branches[name] = work(ctx, name)
		end
		return task.all(branches)
	end,
})
