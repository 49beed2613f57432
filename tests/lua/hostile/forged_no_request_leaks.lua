-- expect: done
-- A coroutine's effect is the host's business: whoever resumes it never sees the request.
local co = coroutine.create(function()
  return ui.ask { id = "a", prompt = "a" }
end)
local ok, answer = coroutine.resume(co)
assert(ok and answer == "x" and coroutine.status(co) == "dead")
local each = coroutine.wrap(function()
  for _ = 1, 3 do
    coroutine.yield(ui.ask { id = "a", prompt = "a" })
  end
end)
for got in each do
  assert(got == "x")
end
