-- expect: flow-limit or flow-memory
-- Each of a thousand branches stays below the limit; together they would not.
local branches = {}
for n = 1, 1000 do
  branches["b" .. n] = function()
    for _ = 1, 2000000 do
    end
  end
end
task.all(branches)
