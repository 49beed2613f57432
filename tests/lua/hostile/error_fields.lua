-- expect: flow-error
error(setmetatable({}, {
  __index = function()
    while true do
    end
  end,
}))
