-- expect: flow-error
-- Yields a table that looks like a request.
coroutine.yield { kind = "chat", request = {}, effect = "chat" }
