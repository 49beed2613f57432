-- expect: flow-limit
-- A pattern as long as a book.
local pattern = string.rep("x", 8000000)
while true do
  string.pack(pattern)
  string.packsize(pattern)
end
