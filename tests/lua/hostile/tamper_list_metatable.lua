-- expect: done
local mark = getmetatable(json.array {})
assert(mark == "list" or not pcall(rawset, mark, "__index", print))
assert(getmetatable(json.null) == nil)
