-- expect: done
local ok, err = pcall(nietz.fail, "x")
assert(not ok and getmetatable(err) == "error" and not pcall(setmetatable, err, {}))
