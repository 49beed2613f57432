-- expect: flow-limit or flow-memory
-- Requests that can never be yielded, each with a long text that Lua's own memory does not count.
local long = string.rep("x", 4000000)
while true do
  pcall(table.sort, { 1, 2, 3 }, function()
    ui.say(long)
    return true
  end)
end
