-- expect: flow-limit
for _ = 1, math.huge do
end
