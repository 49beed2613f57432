-- expect: flow-limit
local t = table.create(100000, "x")
while true do
  json.encode(t)
  yaml.encode(t)
end
