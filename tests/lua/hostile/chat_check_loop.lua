-- expect: flow-limit
return llm.chat {
  prompt = "x",
  schema = { type = "object" },
  check = function()
    while true do
    end
  end,
}
