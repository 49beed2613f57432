-- expect: request-invalid
local branches = {}
for n = 1, 20000 do
  branches["b" .. n] = print
end
task.all(branches)
