-- expect: flow-error
-- A set that begins with what would close it, and holds escaped letters.
local hay, set = string.rep("b", 8000000), "%[x?[^]" .. string.rep("%a%]", 20000) .. "]*"
for found in string.gmatch(hay, set) do
  print(#found)
end
