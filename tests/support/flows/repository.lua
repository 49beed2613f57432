-- Every operation on a repository and its worktrees, each more than once.
local git = require("@nietz/git")
local nietz = require("@nietz")
local task = require("@nietz/task")

local function code(run, ...)
	local ok, problem = pcall(run, ...)
	return if ok then "ok" else problem.code
end

return nietz.flow({
	name = "repository",
	summary = "Works with git",
	permissions = { git = true, exec = { "sh" } },
	run = function()
		local head = git.head()
		local base = "nietz/base"
		git.branch(base, head.commit)
		-- Two branches, side by side, that touch the same line; the second is committed twice.
		local done = task.all({
			left = function()
				git.branch("nietz/left", head.commit)
				local tree = git.worktree({ name = "left", branch = "nietz/left" })
				local line = tree:replace("src/a.txt", "two", "left")
				tree:write("src/new/left.txt", "left\n")
				tree:exec({ program = { "sh", "-c", "echo made > made.txt; rm README; echo x > ignored.o" }, repeatable = true })
				local commit = tree:commit("left")
				return { tree = tree, commit = commit, line = line, again = tree:commit("nothing").changed }
			end,
			right = function()
				git.branch("nietz/right", head.commit)
				local tree = git.worktree({ name = "right", branch = "nietz/right" })
				tree:write("tests/t.txt", "tampered\n")
				tree:write("tests/more.txt", "more\n")
				tree:commit("tests")
				tree:replace("src/a.txt", "two", "right")
				tree:replace("src/a.txt", "right", "right and right")
				return { tree = tree, commit = tree:commit("right") }
			end,
		})
		local first = git.merge({ from = "nietz/left", into = base, message = "merge left" })
		local again = git.merge({ from = "nietz/left", into = base, message = "merge left again" })
		local second = git.merge({ from = "nietz/right", into = base, message = "merge right" })
		local left, right = done.left.tree, done.right.tree
		right:exec({ program = { "sh", "-c", "echo dirt > src/a.txt; echo more > dirt; echo x > b.o; touch README" }, repeatable = true })
		local touched = right:restore({ from = head.commit, globs = { "tests/**" } })
		local restored = {
			text = right:read("src/a.txt"),
			test = right:read("tests/t.txt"),
			found = right:find("**").paths,
			object = code(right.read, right, "b.o"),
		}
		local refused = {
			dirty = code(right.remove, right),
			twice = code(git.branch, base, head.commit),
			theirs = code(git.branch, "main2", head.commit),
			moved = code(git.merge, { from = "nietz/left", into = "main", message = "x" }),
			used = code(git.merge, { from = "nietz/left", into = "nietz/right", message = "x" }),
			absent = code(git.worktree, { name = "x", branch = "nietz/absent" }),
			name = code(git.worktree, { name = "../x", branch = base }),
		}
		right:remove({ discard = true })
		left:remove()
		refused.gone = code(left.read, left, "src/a.txt")
		return {
			commits = { base = git.commit_of(base), left = done.left.commit.commit, right = done.right.commit.commit },
			left = { line = done.left.line, changed = done.left.commit.changed, again = done.left.again },
			merged = { first = first.commit == git.commit_of(base), again = again.commit == first.commit },
			conflict = { commit = second.commit or "none", conflicts = second.conflicts, messages = second.messages },
			changed = git.changed(head.commit, git.commit_of(base) :: string),
			patch = git.diff(head.commit, done.right.commit.commit).patch,
			touched = touched,
			restored = restored,
			refused = refused,
			list = git.head().branch,
		}
	end,
})
