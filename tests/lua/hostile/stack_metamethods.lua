-- expect: flow-error
local t = {}
setmetatable(t, {
  __index = function(_, k)
    return t[k]
  end,
  __concat = function()
    return t .. t
  end,
})
pcall(function()
  return t .. t
end)
return t.x
