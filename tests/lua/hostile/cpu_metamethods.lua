-- expect: flow-limit
local t = setmetatable({}, {
  __index = function(self, key)
    return self[key + 1]
  end,
})
while true do
  pcall(function()
    return t[1]
  end)
end
