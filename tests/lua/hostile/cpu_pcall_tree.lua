-- expect: flow-limit
-- Each level swallows the error and goes on with another branch.
local function tree(depth)
  if depth > 0 then
    pcall(tree, depth - 1)
    pcall(tree, depth - 1)
  end
end
tree(150)
