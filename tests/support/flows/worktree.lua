-- One worktree, one command in it, and what came of it.
local git = require("@nietz/git")
local nietz = require("@nietz")
local task = require("@nietz/task")

return nietz.flow({
	name = "worktree",
	summary = "Runs a command in a worktree",
	params = {
		script = { type = "string", positional = true, required = true },
		seconds = { type = "number", default = 50 },
		idle = { type = "number" },
		limit = { type = "number" },
		repeatable = { type = "boolean" },
		handled = { type = "boolean" },
	},
	permissions = { git = true, exec = { "{script}" } },
	run = function(ctx)
		local branch = "nietz/" .. ctx.run
		git.branch(branch, git.head().commit)
		local tree = git.worktree({ name = "one", branch = branch })
		local function exec()
			return tree:exec({
				shell = ctx.params.script,
				seconds = ctx.params.seconds,
				idle = ctx.params.idle,
				repeatable = ctx.params.repeatable,
			})
		end
		local ok, ran = true, nil
		if ctx.params.limit then
			ok, ran = pcall(task.limit, ctx.params.limit, exec)
		elseif ctx.params.handled then
			ok, ran = pcall(exec)
		else
			ran = exec()
		end
		local commit = tree:commit("what it left")
		return { ok = ok, ran = if ok then ran else { code = ran.code }, path = tree.path, commit = commit.commit }
	end,
})
