-- expect: flow-limit
-- Effects that do not wait: each could begin the time limit anew.
while true do
  clock.now()
end
