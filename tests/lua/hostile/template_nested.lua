-- expect: template-invalid
return template.text("{{ " .. string.rep("(", 100000) .. "1" .. string.rep(")", 100000) .. " }}")
