--!strict
--- Figures in texts: which of them somebody said, and whether one that nobody said follows from those by a sum. They are compared by
--- their value, so that `1,450`, `1450` and `1 450` are one figure. Pure.

local list = require("./list")
local text = require("@nietz/text")

local figures = {}

--- A figure as it is written, and its value.
export type Figure = { written: string, value: number }

--- Smaller ones are words more than figures: two options, five years.
figures.LEAST = 10
--- How far a sum may be from the figure that it gives, as a share of it: figures are told rounded.
local ROUNDED = 0.03
--- The same in the column of a table, which adds up.
local ROUNDED_IN_TABLE = 0.001
--- Numbers of the calendar and the clock, of which anybody may make use, beside months of whole years up to ten.
local COMMON = { 10, 30, 31, 50, 52, 90, 100, 365, 1000 }

local function is_common(value: number): boolean
	return table.find(COMMON, value) ~= nil or (value % 12 == 0 and value <= 120)
end

--- Figures as they are written: hours (33 h 45), with parted thousands, times of the clock (13:15), others.
local WRITTEN =
	"[0-9]{1,3}[ \u{a0}\u{202f}]?h[ \u{a0}\u{202f}]?[0-5][0-9]\\b|[0-9]{1,3}(?:[ \u{a0}\u{202f}'][0-9]{3})+\\b|[0-9]{1,2}:[0-5][0-9]\\b|[0-9]+(?:[.,][0-9]+)*"

--- Returns the value of a written figure: a mark before three digits parts thousands, any other is a decimal one. A time of the
--- clock is in hours.
local function value_of(written: string): number?
	local hours, minutes = string.match(written, "^(%d+):(%d+)$")
	if hours ~= nil and minutes ~= nil then
		return tonumber(hours) :: number + tonumber(minutes) :: number / 60
	end
	local plain = string.gsub(written, "[\194\160\226\128\175%s']", "")
	hours, minutes = string.match(plain, "^(%d+)h(%d%d)$")
	if hours ~= nil and minutes ~= nil then
		return tonumber(hours) :: number + tonumber(minutes) :: number / 60
	end
	if string.find(plain, "^[1-9]%d?%d?[,%.]%d%d%d$") ~= nil or string.find(plain, "^%d%d?%d?[,%.]%d%d%d[,%.]%d%d%d$") ~= nil then
		plain = string.gsub(plain, "[,%.]", "")
	end
	return tonumber((string.gsub(plain, ",", ".")))
end

--- Returns the figures of a text, in order.
function figures.of(line: string): { Figure }
	local found: { Figure } = {}
	local from = 1
	while true do
		local hit = text.search(line, WRITTEN, from)
		if hit == nil then
			return found
		end
		local value = value_of(hit.text)
		if value ~= nil then
			local thousands = string.find(string.sub(line, hit.last + 1, hit.last + 2), "^k%f[%W]") ~= nil
			table.insert(found, { written = hit.text, value = if thousands then 1000 * value else value })
		end
		from = hit.last + 1
	end
end

local function has(known: { Figure }, value: number): boolean
	for _, figure in known do
		if figure.value == value then
			return true
		end
	end
	return false
end

--- Returns the figures of a line that are not among the known ones.
function figures.unsaid(line: string, known: { Figure }): { string }
	local found: { string } = {}
	for _, figure in figures.of(line) do
		if figure.value >= figures.LEAST and not has(known, figure.value) and table.find(found, figure.written) == nil then
			table.insert(found, figure.written)
		end
	end
	return found
end

--- A sum while it is read: its signs, and where we are.
type Reading = { signs: { string }, at: number }

local function take(reading: Reading, wanted: { string }): string?
	local sign = reading.signs[reading.at]
	if sign ~= nil and table.find(wanted, sign) ~= nil then
		reading.at += 1
		return sign
	end
	return nil
end

local read_sum: (reading: Reading) -> number?

local function read_one(reading: Reading): number?
	if take(reading, { "-" }) ~= nil then
		local value = read_one(reading)
		return if value ~= nil then -value else nil
	elseif take(reading, { "(" }) ~= nil then
		local inner = read_sum(reading)
		return if take(reading, { ")" }) ~= nil then inner else nil
	end
	local sign = reading.signs[reading.at]
	local value = if sign ~= nil then value_of(sign) else nil
	if value == nil then
		return nil
	end
	reading.at += 1
	return if take(reading, { "%" }) ~= nil then value / 100 else value
end

local function read_factor(reading: Reading): number?
	local value = read_one(reading)
	if value ~= nil and take(reading, { "^" }) ~= nil then
		local power = read_one(reading)
		return if power ~= nil then value ^ power else nil
	end
	return value
end

local function read_product(reading: Reading): number?
	local value = read_factor(reading)
	while value ~= nil do
		local sign = take(reading, { "*", "/" })
		if sign == nil then
			return value
		end
		local next = read_factor(reading)
		if next == nil or (sign == "/" and next == 0) then
			return nil
		end
		value = if sign == "*" then value * next else value / next
	end
	return nil
end

read_sum = function(reading: Reading): number?
	local value = read_product(reading)
	while value ~= nil do
		local sign = take(reading, { "+", "-" })
		if sign == nil then
			return value
		end
		local next = read_product(reading)
		value = if next == nil then nil elseif sign == "+" then value + next else value - next
	end
	return nil
end

--- Returns what a sum gives (`1,600 × 12`); nil where it is none, or has a figure that is neither known nor one of everybody's.
function figures.result(sum: string, known: { Figure }): number?
	local plain = string.gsub(string.gsub(string.gsub(sum, "×", "*"), "÷", "/"), "−", "-")
	plain = string.gsub(string.gsub(plain, "(%d%s*)[xX](%s*%d)", "%1*%2"), "(%s)[xX](%s)", "%1*%2")
	plain = string.gsub(string.gsub(string.gsub(plain, "€", ""), "£", ""), "%$", "")
	local signs: { string } = {}
	local from = 1
	while true do
		local hit = text.search(plain, WRITTEN .. "|[-+*/()%^]", from)
		if hit == nil then
			break
		end
		table.insert(signs, hit.text)
		from = hit.last + 1
	end
	for _, sign in signs do
		local value = value_of(sign)
		if value ~= nil and value >= figures.LEAST and not has(known, value) and not is_common(value) then
			return nil
		end
	end
	local reading = { signs = signs, at = 1 }
	local value = read_sum(reading)
	return if reading.at > #signs then value else nil
end

--- Whether two values are one but for rounding.
local function is_near(one: number, other: number, rounded: number?): boolean
	return math.abs(one - other) <= (rounded or ROUNDED) * math.abs(one)
end

--- Signs as they are written, and as they are read.
local SIGNS = {
	{ "×", "*" },
	{ "÷", "/" },
	{ "−", "-" },
	{ "–", "-" },
	{ "€", "" },
	{ "£", "" },
	{ "%$", "" },
	{ "\194\160", " " },
	{ "\226\128\175", " " },
	{ "(%d[%%%)]?)%s*·%s*(%(?%d)", "%1 * %2" },
	{ "(%d)%s?[xX]%s?(%d)", "%1 * %2" },
	-- Hours, and minutes as parts of them.
	{ "(%d+) ?h ?(%d%d)%f[%D]", "%1:%2" },
	{ "(%d+) ?min%a*", "%1/60" },
}
--- A word between a figure and the sign behind it: `36 probes × 12`.
local UNIT = "(%d[%%%)]?)%s+[%a\128-\255][%a\128-\255%.]*(%s+[%*/%+%-]%s)"
local ANOTHER_WORD = "(%d[%%%)]?)%s+[%a\128-\255]+(%s+[%a\128-\255]+%s+[%*/%+%-]%s)"

--- Returns the calculations that are written out in a text (`410 × 11%`, `(3,150 − 60) ÷ 6`, `33 h 45 − 2 h 30`).
local function calculations_in(line: string): { string }
	local plain = line
	for _, sign in SIGNS do
		plain = string.gsub(plain, sign[1], sign[2])
	end
	plain = string.gsub(string.gsub(plain, ANOTHER_WORD, "%1%2"), UNIT, "%1%2")
	local found: { string } = {}
	for raw in string.gmatch(plain, "[%d%(][%d%.,:%%%s%(%)%*/%+%-]*[%*/%+%-][%d%.,:%%%s%(%)%*/%+%-]*[%d%)%%]") do
		local calculation = raw :: string
		local _, opened = string.gsub(calculation, "%(", "")
		local _, closed = string.gsub(calculation, "%)", "")
		if opened > closed then
			calculation = string.gsub(calculation, "^[^%(]*%(", "")
		elseif closed > opened then
			calculation = string.gsub(calculation, "%)$", "")
		end
		-- A date is no difference, and what a sum comes to in brackets behind its result is one.
		if string.find(calculation, "%d%-%d%d?%-%d") == nil then
			table.insert(found, calculation)
			local inner = string.match(calculation, "^[^%(]+%((.*[%*/%+%-].*)%)$")
			if inner ~= nil then
				table.insert(found, inner :: string)
			end
		end
	end
	return found
end

--- Returns the figures that stand in sums which are written out: whoever reads them sees where they come from.
function figures.in_sums(line: string): { Figure }
	local found: { Figure } = {}
	for _, calculation in calculations_in(line) do
		local own = figures.of(calculation)
		table.move(own, 1, #own, #found + 1, found)
	end
	return found
end

--- How many letters may stand between a figure and the sum in brackets that gives it.
local FAR = 16
--- How else the value of a sum may be told: a share in percent, hours in minutes, minutes in hours.
local FACTORS = { 1, 100, 60, 1 / 60 }

--- Whether a figure tells a value, but for rounding.
local function tells(figure: Figure, value: number, rounded: number?): boolean
	return list.some(FACTORS, function(factor): boolean
		return is_near(figure.value, math.abs(factor * value), rounded)
	end)
end

--- Returns the figures of a text that a calculation in it gives, and those that it is made of; one may follow from another.
function figures.worked_out(line: string, known: { Figure }): { Figure }
	local all: { Figure }, found: { Figure } = table.clone(known), {}
	local in_line: { Figure }? = nil
	for _, calculation in calculations_in(line) do
		local value = figures.result(calculation, all)
		local candidates: { Figure } = {}
		if value ~= nil then
			in_line = in_line or figures.of(line)
			candidates = in_line :: { Figure }
			local parts = figures.of(calculation)
			table.move(parts, 1, #parts, #found + 1, found)
		end
		for _, figure in candidates do
			if tells(figure, value :: number) then
				table.insert(found, figure)
				table.insert(all, figure)
			end
		end
	end
	return found
end

--- Returns the sums of a text that do not give the figure before their brackets (`5,000 (1,600 × 2)`), each with what it gives.
function figures.wrong_sums(line: string): { { written: string, gives: number } }
	local found: { { written: string, gives: number } } = {}
	local plain = line
	for _, sign in SIGNS do
		plain = string.gsub(plain, sign[1], sign[2])
	end
	for before: string, sum: string in string.gmatch(plain, "([^%(%)]*)%(([%d%.,%s%*/%+%-]*%d)%)") :: any do
		local all = figures.of(before)
		local last = all[#all]
		local has_sign = string.find(sum, "%d%s*[%*/]%s*%d") ~= nil or string.find(sum, "%d%s+[%+%-]%s+%d") ~= nil
		local value = if has_sign then figures.result(sum, figures.of(sum)) else nil
		local words = if last ~= nil then string.match(before, "([^%d]*)$") or "" else ""
		-- What stands far behind a figure is the sum of another.
		if last ~= nil and value ~= nil and #words <= FAR and not tells(last, value) then
			table.insert(found, { written = last.written, gives = math.round(100 * value) / 100 })
		end
	end
	return found
end

--- Returns the figure of a cell with its sign, or nil where it has none, or several.
local function of_cell(cell: string): Figure?
	local plain = string.gsub(cell, "−", "-")
	local found = figures.of(plain)
	if #found ~= 1 then
		return nil
	end
	local is_less = string.find(plain, "%-%s*[€$£]?%s*%d") ~= nil and string.find(plain, "%w%s*%-") == nil
	return { written = found[1].written, value = if is_less then -found[1].value else found[1].value }
end

--- Returns between what a value is that this one may tell, but for rounding: a pair for each way to tell it.
local function told_by(value: number, rounded: number): { { number } }
	local near = rounded * math.abs(value)
	return list.map(FACTORS, function(factor): { number }
		return { (value - near) / factor, (value + near) / factor }
	end)
end

local function is_within(told: { { number } }, value: number): boolean
	local size = math.abs(value)
	for _, limits in told do
		if size >= limits[1] and size <= limits[2] then
			return true
		end
	end
	return false
end

--- How many rows above a cell are looked at for what it is the sum of.
local MOST_ROWS = 40

--- Returns the figures of a column of a table that are the sum of those above them, or the sum or the difference of two of them.
function figures.summed(cells: { string }): { Figure }
	local found: { Figure } = {}
	local above: { Figure } = {}
	for _, cell in cells do
		local figure = of_cell(cell)
		if figure == nil then
			continue
		end
		local total = 0
		local told = told_by(figure.value, ROUNDED_IN_TABLE)
		local gives = false
		-- The sum may begin behind another one.
		for index = #above, math.max(1, #above - MOST_ROWS), -1 do
			local one = above[index].value
			total += one
			gives = gives or (index < #above and is_within(told, total))
			for before = math.max(1, index - MOST_ROWS), index - 1 do
				local other = above[before].value
				gives = gives or is_within(told, one - other) or is_within(told, one + other)
			end
			if gives then
				break
			end
		end
		if gives then
			table.insert(found, { written = figure.written, value = math.abs(figure.value) })
		end
		-- What nobody said is told by itself; the sum of it is right all the same.
		table.insert(above, figure)
	end
	return found
end

--- By how much anybody multiplies or divides without saying so: a few, and the months and weeks of a year.
local TIMES = { 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 24, 36, 48, 52, 60 }
--- Smaller ones come of others by chance.
local LEAST_MULTIPLE = 1000

--- Returns what known figures come to by the year, or several times: 19,200 where 1,600 is known.
function figures.multiples(known: { Figure }): { Figure }
	local found: { Figure } = {}
	for _, figure in known do
		for _, times in TIMES do
			local value = figure.value * times
			if figure.value >= figures.LEAST and value >= LEAST_MULTIPLE then
				table.insert(found, { written = tostring(value), value = value })
			end
		end
	end
	return found
end

--- Returns by how much a figure may differ from what it rounds: half of its last digit that is not zero.
local function rounding(written: string, value: number): number
	local decimals = string.match(written, "[%.,](%d+)$")
	if decimals ~= nil and value ~= math.floor(value) then
		return 0.5 * 10 ^ -#(decimals :: string)
	end
	local unit = 1
	while value >= 10 * unit and value % (10 * unit) == 0 do
		unit *= 10
	end
	return 0.5 * unit
end

--- What may be far from a figure that follows from it, and from how much on: smaller ones come of any two by chance.
--- `shares` are the percentages among those that are near: what they are of may stand anywhere.
export type Origins = { near: { Figure }, around: { Figure }, anywhere: { Figure }, shares: { Figure } }
local AROUND, ANYWHERE = 100, 1000
--- How far a product of rounded figures may be from what it is told as, as a share of it.
local CHAINED = 0.001

--- Returns the values that two others come to by one step: sums, differences and shares of each other.
local function steps(a: number, b: number): { number }
	local found = { a + b, math.abs(a - b), a * b / 100, a * (1 + b / 100), a * (1 - b / 100), b * (1 + a / 100), b * (1 - a / 100) }
	if a ~= 0 and b ~= 0 then
		for _, share in { a / b, b / a } do
			table.insert(found, share)
			table.insert(found, 100 * share)
		end
	end
	return found
end

local function great_of(some: { Figure }): { Figure }
	return list.filter(some, function(one): boolean
		return one.value >= ANYWHERE
	end)
end

--- Whether a figure follows, but for rounding, from two others by one step: a sum, a difference, a product, a share. One of them
--- stands near it (in its sentence, or beside it), the other may stand further away the greater the figure is.
function figures.follows(written: string, from: Origins): boolean
	local wanted = figures.of(written)[1]
	if wanted == nil then
		return false
	end
	local value = wanted.value
	local least = rounding(written, value) + 1e-9
	local function is(other: number): boolean
		return math.abs(other - value) <= least
	end
	local function is_product(other: number): boolean
		return math.abs(other - value) <= math.max(least, if value >= ANYWHERE then CHAINED * value else 0)
	end
	local great: { Figure } = if value >= ANYWHERE then great_of(from.anywhere) else {}
	local is_share = list.some(from.shares, function(share): boolean
		local is_of_one = list.some(from.anywhere, function(whole): boolean
			local part = whole.value * share.value / 100
			return whole.value >= AROUND and (is(part) or is(whole.value - part) or is(whole.value + part))
		end)
		-- It may be of a sum of two.
		return is_of_one
			or list.some(great, function(whole): boolean
				local part = whole.value * share.value / 100
				return list.some(great, function(other): boolean
					local more = other.value * share.value / 100
					return is(part + more) or is(part - more)
				end)
			end)
	end)
	if is_share then
		return true
	end
	local others = table.clone(from.near)
	if value >= AROUND then
		table.move(from.around, 1, #from.around, #others + 1, others)
	end
	if value >= ANYWHERE then
		table.move(from.anywhere, 1, #from.anywhere, #others + 1, others)
	end
	local first: { Figure } = if value >= AROUND then from.around else from.near
	return list.some(first, function(one): boolean
		local is_multiple = list.some(TIMES, function(times): boolean
			return is_product(one.value * times) or is(one.value / times)
		end)
		return is_multiple
			or list.some(others, function(other): boolean
				return is_product(one.value * other.value) or list.some(steps(one.value, other.value), is)
			end)
	end)
end

--- How far a time of the clock may be from one that is known to be counted from it, in hours.
local NEAR_TIME = 3

--- Whether a figure is a time of the clock some hours or minutes from one that is known.
function figures.is_time_near(written: string, known: { Figure }): boolean
	local function is_time(value: string): boolean
		return string.find(value, "%d:%d%d") ~= nil or string.find(value, "%dh") ~= nil or string.find(value, "%d h") ~= nil
	end
	local wanted = figures.of(written)[1]
	return wanted ~= nil
		and is_time(written)
		and list.some(known, function(one): boolean
			return is_time(one.written) and math.abs(one.value - wanted.value) <= NEAR_TIME
		end)
end

--- Parts that are told as words behind a figure, in the languages of the flows.
local PARTS: { [string]: number } = {
	["and a quarter"] = 0.25,
	["and a half"] = 0.5,
	["and three quarters"] = 0.75,
	["et quart"] = 0.25,
	["et demi"] = 0.5,
	["et trois quarts"] = 0.75,
}

--- Returns the figures of a text that have a part in words: 33 and three quarters.
function figures.in_words(line: string): { Figure }
	local found: { Figure } = {}
	local folded = text.fold(line)
	for words, part in PARTS do
		if string.find(folded, words, 1, true) == nil then
			continue
		end
		for written in string.gmatch(folded, `(%d+)%s%a*%s?{words}`) do
			table.insert(found, { written = written, value = (tonumber(written) or 0) + part })
		end
		for written in string.gmatch(folded, `(%d+) {words}`) do
			table.insert(found, { written = written, value = (tonumber(written) or 0) + part })
		end
	end
	return found
end

--- Whether a figure is the sum, the difference or the product of two of these, to the digit; or a time of the clock so many minutes
--- from another.
function figures.comes_of(written: string, from: { Figure }): boolean
	local wanted = figures.of(written)[1]
	local function is(value: number): boolean
		return is_near(value, (wanted :: Figure).value, 1e-6)
	end
	return wanted ~= nil
		and list.some(from, function(one): boolean
			return list.some(from, function(other): boolean
				local a, b = one.value, other.value
				local in_minutes = string.find(written, ":", 1, true) ~= nil and (is(a + b / 60) or is(a - b / 60))
				return in_minutes or is(a + b) or is(a - b) or is(a * b)
			end)
		end)
end

return figures
