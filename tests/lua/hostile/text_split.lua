-- expect: flow-limit or flow-memory
local long = string.rep("a,", 200000)
while true do
  text.split(long, ",")
  text.lines(long)
  text.slug(long)
  text.width(long)
  text.truncate(long, 1e300)
  text.truncate(long, 0 / 0)
end
