--!strict
--- How what came differs from what was expected: by one, by a hair, in the order, in the case of letters. Two failures that
--- differ in the same way may have one cause, though they share no word; that both compare X with Y says nothing.

local symptoms = {}

--- How sure a sign of one cause each way to differ is.
local WEIGHTS = {
	hair = 1,
	hours = 0.8,
	order = 0.8,
	case = 0.8,
	space = 0.8,
	letters = 1,
	scale = 0.8,
	sign = 0.8,
	quotes = 0.9,
	cut = 0.4,
	leftover = 0.6,
	doubled = 0.5,
	by_one = 0.3,
	nothing = 0.3,
	missing = 0.1,
} :: { [string]: number }

local NOTHING = { ["null"] = true, ["None"] = true, ["nil"] = true, ["undefined"] = true, ["<null>"] = true, ["Optional.empty"] = true }
local EMPTY = { ["[]"] = true, ["{}"] = true, ['""'] = true, ["''"] = true, [""] = true, ["()"] = true, ["set()"] = true }

local function trim(value: string): string
	return string.match(value, "^%s*(.-)%s*$") or value
end

local function without_spaces(value: string): string
	return (string.gsub(string.gsub(value, "\\[nrt]", ""), "%s", ""))
end

--- Returns the characters of a text in order, which are the same however its parts are arranged.
local function letters(value: string): string
	local list = {}
	for word in string.gmatch(value, "[%w_%.%-]+") do
		table.insert(list, word)
	end
	table.sort(list)
	return table.concat(list, " ")
end

local function of_numbers(want: number, got: number): string?
	local gap = math.abs(want - got)
	local size = math.max(math.abs(want), math.abs(got))
	if gap == 0 then
		return nil
	elseif want == -got then
		return "sign"
	elseif gap == 1 and want == math.floor(want) and got == math.floor(got) then
		return "by_one"
	elseif
		(got ~= math.floor(got) or want ~= math.floor(want)) and (gap / size < 1e-6 or math.abs(gap - 0.01) < 1e-9 or #tostring(got) > 14)
	then
		return "hair"
	elseif want ~= 0 and got ~= 0 and (got == 2 * want) then
		return "doubled"
	elseif want ~= 0 and got ~= 0 then
		for _, factor in { 10, 100, 1000, 60, 1024, 1e6 } do
			if math.abs(want / got - factor) < 1e-9 or math.abs(got / want - factor) < 1e-9 then
				return "scale"
			end
		end
		if gap % 3600 == 0 and size > 86400 then
			return "hours"
		end
	end
	return nil
end

--- Returns the hour and the rest of a time, or nil.
local function clock_of(value: string): (string?, string?)
	local day, hour, rest = string.match(value, "(%d%d%d%d%-%d%d%-%d%d)[T ](%d%d):(%d%d:?%d*)")
	return if hour then hour else nil, if hour then `{string.sub(day :: string, 1, 7)} {rest}` else nil
end

--- Whether letters beyond ASCII came out as something else: read as another encoding, or as marks of what cannot be read.
local function has_lost_letters(want: string, got: string): boolean
	if string.find(want, "[\128-\255]") == nil then
		return false
	end
	for _, sign in { "Ã", "Â", "\\x", "\\u00", "�", "?" } do
		if string.find(got, sign, 1, true) ~= nil and string.find(want, sign, 1, true) == nil then
			return true
		end
	end
	return false
end

--- Whether two values are one but for quotation marks: a number that is a text.
local function differ_in_quotes(want: string, got: string): boolean
	local plain_want, plain_got = string.match(want, "^[\"'`](.*)[\"'`]$"), string.match(got, "^[\"'`](.*)[\"'`]$")
	return (plain_want == got) ~= (plain_got == want)
end

--- Returns how a value differs from what was expected, or nil where that says nothing.
function symptoms.of(expected: string?, actual: string?): string?
	if expected == nil or actual == nil then
		return nil
	end
	local want, got = trim(expected), trim(actual)
	local want_number, got_number = tonumber(want), tonumber(got)
	if want_number ~= nil and got_number ~= nil then
		return of_numbers(want_number, got_number)
	elseif NOTHING[got] and not NOTHING[want] then
		return "nothing"
	elseif EMPTY[want] and not EMPTY[got] then
		return "leftover"
	elseif EMPTY[got] then
		return "missing"
	elseif differ_in_quotes(want, got) then
		return "quotes"
	elseif string.lower(want) == string.lower(got) then
		return if want ~= got then "case" else "space"
	elseif without_spaces(want) == without_spaces(got) then
		return "space"
	end
	local want_hour, want_rest = clock_of(want)
	local got_hour, got_rest = clock_of(got)
	if want_hour ~= nil and got_hour ~= nil and want_hour ~= got_hour and want_rest == got_rest then
		return "hours"
	end
	if has_lost_letters(want, got) then
		return "letters"
	elseif letters(want) == letters(got) and string.find(want, "[,%s]") then
		return "order"
	elseif #got >= 3 and #want > #got and string.sub(want, 1, #got - 1) == string.sub(got, 1, #got - 1) then
		return "cut"
	end
	return nil
end

--- Returns what a way to differ is worth as a sign.
function symptoms.weight(name: string): number
	return WEIGHTS[name]
end

return symptoms
