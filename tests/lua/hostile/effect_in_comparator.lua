-- expect: flow-error
table.sort({ 3, 2, 1 }, function()
  ui.say("from inside")
  return true
end)
