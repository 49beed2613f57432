-- expect: done
-- The handler of xpcall may not wait; the error that it raises stays inside of xpcall.
local ok = xpcall(error, function()
  return ui.ask { id = "a", prompt = "a" }
end, "x")
assert(not ok)
