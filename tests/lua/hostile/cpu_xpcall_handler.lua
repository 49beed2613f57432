-- expect: flow-limit
-- The error handler never ends.
xpcall(function()
  error("x")
end, function()
  while true do
  end
end)
