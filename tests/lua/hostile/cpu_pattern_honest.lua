-- expect: done
-- Long texts and long patterns are fine as long as no set of them is long.
local hay = string.rep("key = value ", 100000)
assert(string.match(hay, string.rep("key = value ", 1000) .. "([%w_]+) = ([^%s]+)") == "key")
assert(#string.gsub(hay, "[%s=]+", "") == 800000)
