-- expect: flow-limit
while true do
  pcall(table.concat, {}, "", 1, 1e9)
  pcall(table.concat, table.create(1000000, ""), "", 1, 1e15)
end
