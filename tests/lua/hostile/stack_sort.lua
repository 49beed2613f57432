-- expect: flow-error
local function f()
  table.sort({ 1, 2, 3 }, f)
  return true
end
f()
