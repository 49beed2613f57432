-- expect: flow-memory
local t = {}
while true do
  local co = coroutine.create(function()
    coroutine.yield()
  end)
  coroutine.resume(co)
  table.insert(t, co)
end
