-- expect: flow-memory
-- A thousand branches, each with a thousand branches.
local function many(depth)
  local branches = {}
  for n = 1, 1000 do
    branches["b" .. n] = function()
      if depth > 0 then
        return many(depth - 1)
      end
    end
  end
  return task.all(branches)
end
many(3)
