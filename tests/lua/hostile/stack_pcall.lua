-- expect: flow-error
local function f()
  local ok, err = pcall(f)
  error(err, 0)
end
f()
