-- expect: flow-limit
-- Swallows the error of the time limit again and again.
while true do
  pcall(function()
    while true do
    end
  end)
end
