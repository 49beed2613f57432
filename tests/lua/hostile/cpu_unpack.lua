-- expect: flow-limit
local data = string.rep("\0", 8000000)
local pattern = string.rep("x", 7000000) .. "b"
while true do
  string.unpack(pattern, data)
end
