--!strict
--- Asks a model for a value that fits a schema. Apart, so that every mode treats a reply that cannot be used in the same way.

local failure = require("./failure")
local llm = require("@nietz/llm")

local ask = {}

--- Returns the one or two values that `give` returns, or nil where a model in it could not write a valid value: callers go
--- on without one. Any other failure (no connection, no key) is raised, because whatever follows would fail for it, too.
function ask.try<A, B>(give: () -> (A, B)): (A?, B?)
	local ok, value, more = pcall(give)
	if ok then
		return value, more
	elseif failure.is(value, "reply-invalid") then
		return nil, nil
	end
	return error(value, 0)
end

--- Returns the value that a model writes, and its whole reply.
function ask.value(request: llm.Chat): (any, llm.Reply?)
	return ask.try(function(): (any, llm.Reply)
		local reply = llm.chat(request)
		return reply.value, reply
	end)
end

return ask
