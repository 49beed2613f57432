-- expect: flow-limit or flow-memory
string.gsub(string.rep("a", 8000000), "a", function()
  for _ = 1, 100 do
  end
end)
