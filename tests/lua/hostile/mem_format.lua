-- expect: flow-memory
local s = string.rep("x", 10000000)
return string.format(string.rep("%s", 100), table.unpack(table.create(100, s)))
