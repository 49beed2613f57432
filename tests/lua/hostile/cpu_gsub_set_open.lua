-- expect: flow-error
return string.gsub(string.rep("b", 8000000), "b*[" .. string.rep("a", 90000), "")
