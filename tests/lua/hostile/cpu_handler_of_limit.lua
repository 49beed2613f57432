-- expect: flow-limit
-- The handler of the limit's own error goes on for ever.
while true do
  xpcall(function()
    while true do
    end
  end, function()
    while true do
    end
  end)
end
