-- expect: flow-error
getmetatable("").__index = function()
  return print
end
