-- expect: done or flow-limit
-- Hundreds of large expressions; growth is what is watched here.
for i = 1, 200 do
  pcall(text.search, "zyzy", "[a-z]*y[ab]{" .. (8000 + i) .. "}[cd]")
end
