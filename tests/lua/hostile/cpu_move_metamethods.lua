-- expect: flow-limit
local slow = setmetatable({}, {
  __index = function()
    for _ = 1, 1000 do
    end
    return 1
  end,
})
table.move(slow, 1, 9000000, 1, {})
