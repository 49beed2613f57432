-- expect: request-invalid
-- 23 tables that stand for four million.
local t = { "x" }
for _ = 1, 22 do
  t = { t, t }
end
return json.encode(t)
