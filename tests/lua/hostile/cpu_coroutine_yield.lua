-- expect: flow-limit
-- Yields for ever: to itself and, where there is no coroutine, to the host.
local co = coroutine.wrap(function()
  while true do
    coroutine.yield()
  end
end)
while true do
  co()
end
