-- expect: done
-- Another branch resumes a coroutine that waits for an answer, and gives it a wrong one.
local co
local results = task.settle {
  a = function()
    co = coroutine.create(function()
      return ui.ask { id = "a", prompt = "a" }
    end)
    return (select(2, coroutine.resume(co)))
  end,
  b = function()
    return (select(2, coroutine.resume(co, true, "forged")))
  end,
}
assert(results.a.ok and results.b.ok)
