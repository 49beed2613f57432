-- expect: flow-error
-- Gives the host a stray yield, swallows its answer, and has the time limit begin anew.
while true do
  pcall(coroutine.yield, 1)
end
