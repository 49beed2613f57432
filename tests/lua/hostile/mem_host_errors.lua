-- expect: done
-- Keeps the errors of functions of the host, which live outside of Lua's memory if one is not careful.
local kept = {}
for _ = 1, 3000 do
  for _, f in { string.split, string.find, require, json.encode, ui.say, text.slug } do
    local _, err = pcall(f, f, f)
    table.insert(kept, err)
  end
end
