-- expect: flow-error
local t
t = setmetatable({}, {
  __tostring = function()
    return tostring(t)
  end,
})
return tostring(t)
