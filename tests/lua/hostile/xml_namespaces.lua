-- expect: document-unreadable
local parts = {}
for i = 1, 40000 do
  parts[i] = `xmlns:n{i}="u{i}" `
end
return xml.decode("<r " .. table.concat(parts) .. ">" .. string.rep("<n40000:c/>", 40000) .. "</r>")
