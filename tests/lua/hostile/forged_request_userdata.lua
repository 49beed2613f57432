-- expect: flow-error
-- Yields the only things it can get that are not plain: null, a buffer, a thread.
pcall(coroutine.yield, json.null)
pcall(coroutine.yield, coroutine.create(function() end))
coroutine.yield(buffer.create(1))
