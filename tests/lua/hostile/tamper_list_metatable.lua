-- expect: done
local mark = getmetatable(json.array {})
assert(mark == "list")
assert(getmetatable(json.null) == nil)
