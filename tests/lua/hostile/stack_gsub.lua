-- expect: flow-error
local function f()
  return string.gsub("a", "a", f)
end
f()
