-- expect: done
-- The longest text that may be parsed, of the smallest parts.
while #yaml.decode("[" .. string.rep("a,", 100000) .. "]") ~= 100000 do
end
pcall(yaml.decode, string.rep("? ", 200000))
pcall(yaml.decode, string.rep("&a ", 100000))
pcall(yaml.decode, string.rep("'", 300000))
pcall(yaml.decode, string.rep("a:\n", 100000))
pcall(yaml.decode, string.rep("#", 300000))
pcall(yaml.decode, "|\n" .. string.rep(" ", 300000))
