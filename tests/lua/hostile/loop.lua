-- expect: flow-limit
while true do
end
