--!strict
--- Days of the calendar in texts (`5 December`, `Dec 5`, `5 décembre`), and which of them are counted from one that was said: a whole
--- number of weeks from it, as in "every second Saturday". Years are passed over. Pure.

local list = require("./list")
local text = require("@nietz/text")

local dates = {}

--- A day as it is written, and its place in a year.
type Date = { written: string, day: number, place: number }

--- The days before each month, and how months begin in the languages of the flows.
local BEFORE = { 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334 }
local MONTHS = {
	"jan",
	"feb|fev",
	"mar",
	"apr|avr",
	"may|mai",
	"jun|juin",
	"jul|juil",
	"aug|aou",
	"sep",
	"oct",
	"nov",
	"dec",
}
--- Of each month, a word for it.
local FIRST_OF = { "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec" }
--- Further than this, in weeks, nobody counts on.
local FARTHEST = 26

--- Returns the month that a word begins like, or nil.
local function month_of(word: string): number?
	for month, begins in MONTHS do
		for _, begin in string.split(begins, "|") do
			if string.sub(word, 1, #begin) == begin then
				return month
			end
		end
	end
	return nil
end

--- Returns the days that a text names with their months.
local function of(line: string): { Date }
	local found: { Date } = {}
	local folded = text.fold(line)
	local function add(written: string?, word: string?)
		local day = if written ~= nil then tonumber(written) else nil
		local month = if word ~= nil then month_of(word) else nil
		if written ~= nil and day ~= nil and month ~= nil and day >= 1 and day <= 31 then
			table.insert(found, { written = written, day = day, place = BEFORE[month] + day })
		end
	end
	for written, word in string.gmatch(folded, "%f[%d](%d%d?)%a*%.?%s+(%a+)") do
		add(written, word)
	end
	for word, written in string.gmatch(folded, "(%a+)%.?%s+(%d%d?)%f[%D]") do
		add(written, word)
	end
	-- "5 and 19 December".
	for written, word in string.gmatch(folded, "%f[%d](%d%d?)%s*%a*,?%s+%a*%s*%d%d?%s+(%a+)") do
		add(written, word)
	end
	for month, written in string.gmatch(line, "%d%d%d%d%-(%d%d)%-(%d%d)") do
		add(written, FIRST_OF[tonumber(month) or 0])
	end
	return found
end

local function is_counted(date: Date, from: { Date }): boolean
	return list.some(from, function(one): boolean
		for _, days in { 0, 365, 366, -365, -366 } do
			local apart = math.abs(date.place - one.place + days)
			if apart % 7 == 0 and apart <= 7 * FARTHEST then
				return true
			end
		end
		return false
	end)
end

--- Returns the days of the month that a text names and that are counted from a day that is known.
function dates.counted(line: string, known: string): { string }
	local from = of(known)
	local found: { string } = {}
	for _, date in of(line) do
		if is_counted(date, from) then
			table.insert(found, date.written)
		end
	end
	return found
end

return dates
