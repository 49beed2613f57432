-- expect: request-invalid
-- Rows as long as they may be, until one is refused.
local rows = documents.collection("rows")
for n = 20, 26 do
  rows:append { text = string.rep("x", 2 ^ n) }
end
