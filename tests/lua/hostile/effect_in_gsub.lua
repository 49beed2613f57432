-- expect: flow-error
string.gsub("aaa", "a", function()
  return ui.ask { id = "a", prompt = "a" }
end)
