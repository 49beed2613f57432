-- expect: flow-error
local branches = {}
for n = 1, 500 do
  branches["b" .. n] = function()
    error(string.rep("x", 80000) .. n)
  end
end
task.all(branches)
