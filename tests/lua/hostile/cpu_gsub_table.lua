-- expect: flow-limit or flow-memory
-- Looks up each letter in a table whose metamethod is slow.
local slow = setmetatable({}, {
  __index = function()
    for _ = 1, 1000 do
    end
    return "b"
  end,
})
string.gsub(string.rep("a", 4000000), "a", slow)
