--!strict
--- Asking a model for a value that fits a schema.

local failure = require("./failure")
local llm = require("@nietz/llm")

local ask = {}

--- Returns the one or two values that `give` returns, or nil where a model could not write a valid value in it: each caller
--- knows how to go on without. What else goes wrong (no connection, no key) is raised, for nothing that follows would work
--- either.
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
