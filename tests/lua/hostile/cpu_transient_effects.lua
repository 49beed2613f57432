-- expect: flow-limit
while true do
  ui.status("busy")
end
