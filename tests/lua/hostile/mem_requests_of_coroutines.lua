-- expect: flow-limit or flow-memory
-- The same from inside of a coroutine that is itself inside of a callback.
local long = string.rep("x", 4000000)
while true do
  string.gsub("a", "a", function()
    local co = coroutine.create(function()
      ui.say(long)
    end)
    coroutine.resume(co)
  end)
end
