-- expect: flow-limit or flow-memory
local data = string.rep("\0", 800000)
local pattern = string.rep("x", 700000) .. "b"
while true do
  string.unpack(pattern, data)
end
