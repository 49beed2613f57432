--!strict
--- Reads what `pcall` caught: an error value of the host or of a flow, or a plain text.

local failure = {}

--- An error value, as the host raises it.
export type Failure = { code: string?, message: string, hint: string?, details: { string }? }

--- Returns what was raised as an error value.
function failure.of(raised: any): Failure
	if type(raised) ~= "table" then
		return { message = tostring(raised) }
	end
	return if type(raised.message) == "string" then raised else { code = raised.code, message = tostring(raised.message) }
end

--- Returns whether what was raised has this code, or one of these.
function failure.is(raised: any, codes: string | { string }): boolean
	local code = if type(raised) == "table" then raised.code else nil
	if type(codes) == "string" then
		return code == codes
	end
	return code ~= nil and table.find(codes, code) ~= nil
end

return failure
