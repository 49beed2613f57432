-- expect: flow-memory
local t = {}
while true do
  table.insert(t, function()
    return t
  end)
end
