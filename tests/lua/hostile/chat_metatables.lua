-- expect: flow-memory
-- Options whose fields are computed are not seen: only what is there counts.
return llm.chat(setmetatable({}, {
  __index = function(_, key)
    return if key == "prompt" then string.rep("x", 50000000) else nil
  end,
}))
