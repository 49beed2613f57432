-- expect: flow-limit or flow-memory
local text = string.rep("é", 4000000)
while true do
  utf8.len(text)
  utf8.offset(text, 3000000)
  pcall(utf8.codepoint, text, 1, -1)
  for _ in utf8.codes(text) do
  end
end
