--!strict
--- Which of the memory's kinds of error a failure is, from its name and its message; and what two messages of one failure
--- have in common.

local errors = {}

--- The memory's kind for each name that a runtime gives.
local NAMES = {
	AssertionError = "AssertionError",
	AssertionFailedError = "AssertionError",
	ComparisonFailure = "AssertionError",
	ExpectationFailedException = "AssertionError",
	ExpectationNotMetError = "AssertionError",
	Failed = "AssertionError",
	ERR_ASSERTION = "AssertionError",
	JestAssertionError = "AssertionError",
	TypeError = "TypeError",
	AttributeError = "TypeError",
	ClassCastException = "TypeError",
	NullPointerException = "TypeError",
	NoMethodError = "TypeError",
	ReferenceError = "ReferenceError",
	NameError = "ReferenceError",
	UnboundLocalError = "ReferenceError",
	ImportError = "ReferenceError",
	ModuleNotFoundError = "ReferenceError",
	SyntaxError = "SyntaxError",
	ParseError = "SyntaxError",
	IndentationError = "SyntaxError",
	TabError = "SyntaxError",
	TimeoutError = "TimeoutError",
	TimeoutException = "TimeoutError",
	ConnectionError = "NetworkError",
	ConnectionRefusedError = "NetworkError",
	ConnectionResetError = "NetworkError",
	ECONNREFUSED = "NetworkError",
	ECONNRESET = "NetworkError",
	ENOTFOUND = "NetworkError",
	ValidationError = "ValidationError",
	RuntimeError = "RuntimeError",
	RangeError = "RuntimeError",
	IndexError = "RuntimeError",
	KeyError = "RuntimeError",
	ValueError = "RuntimeError",
	ZeroDivisionError = "RuntimeError",
	RecursionError = "RuntimeError",
	OverflowError = "RuntimeError",
	OSError = "RuntimeError",
} :: { [string]: string }

--- Whether a word is the name of an error that every program has: it tells the kind, and nothing else.
function errors.is_common_name(word: string): boolean
	return NAMES[word] ~= nil
end

--- The memory's kind for a part of a message, in the order in which they are looked for.
local PARTS = {
	{ "assertion", "AssertionError" },
	{ "assert ", "AssertionError" },
	{ "expect(", "AssertionError" },
	{ "timed out", "TimeoutError" },
	{ "exceeded timeout", "TimeoutError" },
	{ "timeout of ", "TimeoutError" },
	{ "deadline exceeded", "TimeoutError" },
	{ "connection refused", "NetworkError" },
	{ "connection reset", "NetworkError" },
	{ "network is unreachable", "NetworkError" },
	{ "mismatched types", "TypeError" },
	{ "cannot find", "ReferenceError" },
	{ "undefined: ", "ReferenceError" },
	{ "is not defined", "ReferenceError" },
	{ "is not a function", "TypeError" },
	{ "cannot read propert", "TypeError" },
	{ "nil pointer", "TypeError" },
	{ "syntax error", "SyntaxError" },
	{ "unexpected token", "SyntaxError" },
	{ "error: expected ", "SyntaxError" },
	{ "unclosed delimiter", "SyntaxError" },
	{ "validation", "ValidationError" },
	{ "panic", "RuntimeError" },
	{ "index out of ", "RuntimeError" },
	{ "unwrap()", "RuntimeError" },
	{ "overflow", "RuntimeError" },
	{ "divide by zero", "RuntimeError" },
	{ "got ", "AssertionError" },
	{ "want ", "AssertionError" },
} :: { { string } }

--- Returns the kind: by the name that the runtime gives, else by a name at the beginning of the message, else by what
--- the message says; `Other` where nothing tells.
function errors.kind(name: string?, message: string): string
	for _, given in { name or "", string.match(message, "^%s*([%w_%.]+):") or "", string.match(message, "%[?code:? '?([%u_]+)'?") or "" } do
		local last = string.match(given, "([%w_]+)$")
		local known = if last then NAMES[last] else nil
		if known ~= nil then
			return known
		end
	end
	local low = string.lower(message)
	for _, pair in PARTS do
		if string.find(low, pair[1], 1, true) ~= nil then
			return pair[2]
		end
	end
	if name ~= nil and string.find(name, "Assert", 1, true) ~= nil then
		return "AssertionError"
	elseif name ~= nil and (string.find(name, "Error$") ~= nil or string.find(name, "Exception$") ~= nil) then
		return "RuntimeError"
	end
	return "Other"
end

--- Returns the part of a message that stays the same from run to run: without numbers, addresses and folders.
function errors.signature(message: string): string
	local first = string.lower(string.sub(message, 1, 400))
	first = string.gsub(first, "[%w_%.%-]*/", "")
	first = string.gsub(first, "0x%x+", "#")
	first = string.gsub(first, "%d+", "#")
	return (string.gsub(first, "%s+", " "))
end

return errors
