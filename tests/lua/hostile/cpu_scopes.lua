-- expect: flow-limit
-- Scopes and branches that do nothing, for ever.
while true do
  task.scope("a", function() end)
  task.all { a = function() end, b = function() end }
  task.settle { a = error }
end
