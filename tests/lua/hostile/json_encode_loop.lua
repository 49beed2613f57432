-- expect: flow-limit or flow-memory
local t = table.create(100000, "x")
while true do
  json.encode(t)
  yaml.encode(t)
end
