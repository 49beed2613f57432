-- expect: flow-limit or flow-memory
-- A pattern as long as a book.
local pattern = string.rep("x", 500000)
while true do
  string.pack(pattern)
  string.packsize(pattern)
end
