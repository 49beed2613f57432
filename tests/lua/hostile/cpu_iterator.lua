-- expect: flow-limit
for _ in function()
  return 1
end do
end
