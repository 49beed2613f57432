-- expect: flow-limit or flow-memory
local long = "[" .. string.rep('{"a":{}},', 60000) .. "1]"
while true do
  json.decode(long)
end
