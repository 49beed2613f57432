-- expect: document-unreadable
return yaml.decode("a: &a [" .. string.rep("x,", 3000) .. "]\nb: [" .. string.rep("*a,", 3000) .. "]")
