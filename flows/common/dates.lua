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
	-- "30.11."
	for written, month in string.gmatch(line, "%f[%d%.](%d%d?)%.(%d%d?)%.%f[%D]") do
		add(written, FIRST_OF[tonumber(month) or 0])
	end
	for month, written in string.gmatch(line, "%d%d%d%d%-(%d%d)%-(%d%d)") do
		add(written, FIRST_OF[tonumber(month) or 0])
	end
	return found
end

--- Returns the days of the month that a text names with their months.
function dates.days(line: string): { string }
	return list.map(of(line), function(date): string
		return date.written
	end)
end

--- How the days of the week begin in the languages of the flows, from Sunday on.
local WEEKDAYS = { "sun|dim", "mon|lun", "tue|mar", "wed|mer", "thu|jeu", "fri|ven", "sat|sam" }
--- What a month moves the day of the week by.
local MOVES = { 0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4 }

--- Returns the place of a day in its week, from 1 for Sunday.
local function weekday_of(year: number, month: number, day: number): number
	local from = if month < 3 then year - 1 else year
	return (from + from // 4 - from // 100 + from // 400 + MOVES[month] + day) % 7 + 1
end

--- Returns the days of the week that a text names wrongly for a date, with the right one. A date without a year is the next one from
--- `today` (`2026-11-27`) on; what is known may have them as it likes.
function dates.wrong_weekdays(line: string, today: string, known: string): { { written: string, right: number } }
	local year, month_now, day_now = string.match(today, "^(%d+)%-(%d+)%-(%d+)")
	local found: { { written: string, right: number } } = {}
	local folded, said = text.fold(line), text.fold(known)
	for written, name, day_written, word, rest in string.gmatch(folded, "((%a%a%a+),?%s+%a*%s*(%d%d?)%a*%.?%s+(%a+)),?%s*(%d*)") :: any do
		local month, day = month_of(word), tonumber(day_written) or 0
		local place: number? = nil
		for at, begins in WEEKDAYS do
			for _, begin in string.split(begins, "|") do
				local is_day = string.find(name, "day$") ~= nil or string.find(name, "di$") ~= nil or name == "dimanche" or #name == 3
				place = if is_day and string.sub(name, 1, 3) == begin then at else place
			end
		end
		if month == nil or place == nil or day < 1 or day > 31 or string.find(said, written, 1, true) ~= nil then
			continue
		end
		local of_year = if #rest == 4 then tonumber(rest) :: number else tonumber(year) :: number
		local is_past = month < (tonumber(month_now) :: number) or (month == tonumber(month_now) and day < (tonumber(day_now) :: number))
		if #rest ~= 4 and is_past then
			of_year += 1
		end
		local right = weekday_of(of_year, month, day)
		if right ~= place then
			table.insert(found, { written = written, right = right })
		end
	end
	return found
end

--- How long a day, a week and a month are, by how they begin in the languages of the flows.
local LENGTHS: { [string]: number } = { day = 1, jour = 1, week = 7, semaine = 7, month = 30.4, mois = 30.4 }

--- A stretch of time as it is written (`22 weeks`), in days, and the days of one of its unit.
type Stretch = { written: string, days: number, unit: number }

--- Returns the stretches of time that a text names.
local function stretches(line: string): { Stretch }
	local found: { Stretch } = {}
	for written: string, word: string in string.gmatch(text.fold(line), "(%d+)[%s%-]+(%a+)") :: any do
		for begins, unit in LENGTHS do
			if string.sub(word, 1, #begins) == begins then
				table.insert(found, { written = written, days = (tonumber(written) or 0) * unit, unit = unit })
			end
		end
	end
	return found
end

--- By how many days two dates may be further apart than their places in a year, as their years are not read.
local YEARS_APART = { 0, 365, -365, 730, -730 }

--- Whether two dates are apart, by any reading of their years, by a number of days that fits.
local function are_apart(one: Date, other: Date, fits: (days: number) -> boolean): boolean
	for _, days in YEARS_APART do
		if fits(math.abs(one.place - other.place + days)) then
			return true
		end
	end
	return false
end

--- Returns dates, each place in a year once.
local function places(found: { Date }): { Date }
	local seen: { [number]: boolean } = {}
	return list.filter(found, function(date): boolean
		local is_new = not seen[date.place]
		seen[date.place] = true
		return is_new
	end)
end

--- What is known, and its days and stretches: one text is asked for many things in a row.
type Known = { text: string, days: { Date }, stretches: { Stretch } }

local last_known: Known?

local function known_of(value: string): Known
	if last_known ~= nil and last_known.text == value then
		return last_known
	end
	local made = { text = value, days = places(of(value)), stretches = stretches(value) }
	last_known = made
	return made
end

--- Returns two lists as one.
local function both<T>(one: { T }, other: { T }): { T }
	local all = table.clone(one)
	table.move(other, 1, #other, #all + 1, all)
	return all
end

local function is_counted(date: Date, from: { Date }, said: { Stretch }): boolean
	return list.some(from, function(one): boolean
		return are_apart(date, one, function(days): boolean
			local in_weeks = days % 7 == 0 and days <= 7 * FARTHEST
			return in_weeks
				or list.some(said, function(stretch): boolean
					return math.abs(days - stretch.days) <= (if stretch.unit > 7 then 2 else 0)
				end)
		end)
	end)
end

--- Returns the numbers of days, weeks or months in a text that lie between two dates of it or of what is known, or that tell a
--- stretch that is known in another unit (154 days for 22 weeks).
function dates.between(line: string, known: string): { string }
	local all = places(both(known_of(known).days, of(line)))
	local said = known_of(known).stretches
	local found: { string } = {}
	for _, stretch in stretches(line) do
		local function fits(days: number): boolean
			return math.abs(days - stretch.days) < math.max(0.5, stretch.unit / 2)
		end
		local is_told = list.some(said, function(one): boolean
			return one.unit ~= stretch.unit and fits(one.days)
		end)
		local lies_between = not is_told
			and list.some(all, function(one): boolean
				return list.some(all, function(other): boolean
					return are_apart(one, other, fits)
				end)
			end)
		if is_told or lies_between then
			table.insert(found, stretch.written)
		end
	end
	return found
end

--- Returns the days of the month that a text names and that are counted from a day that is known.
function dates.counted(line: string, known: string): { string }
	local from, said = known_of(known).days, both(known_of(known).stretches, stretches(line))
	local found: { string } = {}
	for _, date in of(line) do
		if is_counted(date, from, said) then
			table.insert(found, date.written)
		end
	end
	return found
end

return dates
