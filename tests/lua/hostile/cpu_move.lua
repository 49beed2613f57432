-- expect: flow-limit
-- An immense range of nothing.
while true do
  pcall(table.move, {}, 1, 9000000, 2)
  pcall(table.move, {}, 1, 1e15, 2)
  pcall(table.move, {}, -1e15, 1, 2, {})
end
