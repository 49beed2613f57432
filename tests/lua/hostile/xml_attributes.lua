-- expect: document-unreadable
local parts = {}
for i = 1, 100000 do
  parts[i] = `a{i}="" `
end
return xml.decode("<r it='s' " .. table.concat(parts) .. "/>")
