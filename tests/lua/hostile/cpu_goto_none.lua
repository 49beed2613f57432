-- expect: flow-limit
local n = 0
repeat
  n = -n
until n == 1
