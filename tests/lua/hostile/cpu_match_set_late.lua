-- expect: flow-error
-- A long set behind a thousand letters, where nobody looks for one.
local hay, set = string.rep("x", 1001) .. string.rep("b", 8000000), string.rep("x", 1001) .. "[" .. string.rep("a", 90000) .. "b]*"
return string.match(hay, set)
