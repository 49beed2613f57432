-- expect: flow-error
local t = setmetatable({}, {
  __index = function()
    return llm.chat { prompt = "x" }
  end,
})
return t.x
