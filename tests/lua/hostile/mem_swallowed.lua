-- expect: flow-limit or flow-memory
-- Swallows the error of the memory limit again and again.
while true do
  pcall(string.rep, "x", 1000000000)
end
