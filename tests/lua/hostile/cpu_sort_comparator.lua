-- expect: flow-limit or flow-memory
-- The order has no order.
local list = table.create(100000, 1)
while true do
  pcall(table.sort, list, function()
    return true
  end)
end
