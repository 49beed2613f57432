--!strict
--- Numbers that are written in words, in English, French and German: "twenty-two", "quatre-vingt-dix", "vierundzwanzig", and days of a
--- month and how often something is: "the first", "zweimal". Pure.

local figures = require("./figures")
local list = require("./list")
local text = require("@nietz/text")

local number_words = {}

--- Returns values by their words.
local function by_word(lists: { [number]: string }): { [string]: number }
	local found: { [string]: number } = {}
	for value, words in lists do
		for word in string.gmatch(words, "%S+") do
			found[word] = value
		end
	end
	return found
end

--- Words by their values, without accents, in small letters. Those of ten and more may join smaller ones behind them.
local VALUES = by_word {
	[1] = "one un une ein eins eine",
	[2] = "two deux zwei",
	[3] = "three trois drei",
	[4] = "four quatre vier",
	[5] = "five cinq funf",
	[6] = "six sechs",
	[7] = "seven sept sieben",
	[8] = "eight huit acht",
	[9] = "nine neuf neun",
	[10] = "ten dix zehn",
	[11] = "eleven onze elf",
	[12] = "twelve douze zwolf",
	[13] = "thirteen treize dreizehn",
	[14] = "fourteen quatorze vierzehn",
	[15] = "fifteen quinze funfzehn",
	[16] = "sixteen seize sechzehn",
	[17] = "seventeen siebzehn",
	[18] = "eighteen achtzehn",
	[19] = "nineteen neunzehn",
	[20] = "twenty vingt vingts zwanzig",
	[30] = "thirty trente dreissig dreißig",
	[40] = "forty quarante vierzig",
	[50] = "fifty cinquante funfzig",
	[60] = "sixty soixante sechzig",
	[70] = "seventy septante siebzig",
	[80] = "eighty huitante octante achtzig",
	[90] = "ninety nonante neunzig",
	[100] = "hundred cent cents hundert",
	[1000] = "thousand mille tausend",
}

--- Other words that name a number.
local NAMING = by_word {
	[1] = "first once premier premiere ersten erste erster erstes einmal",
	[2] = "second twice seconde zweites zweimal",
	[3] = "third thrice dritten dritte dritter drittes dreimal",
	[4] = "viermal",
	[5] = "fifth cinquieme funfmal",
	[8] = "eighth achten achte",
	[9] = "ninth neuvieme",
	[12] = "twelfth dozen douzaine dutzend",
	[15] = "quinzaine",
	[20] = "twentieth vingtaine",
	[30] = "thirtieth trentaine",
}

--- Words that may stand within a number.
local JOINING: { [string]: boolean } = { ["and"] = true, et = true, und = true }

--- The beginnings of German words that are numbers of several parts, longest first.
local GERMAN = {}
for word in VALUES do
	table.insert(GERMAN, word)
end
table.sort(GERMAN, function(one: string, other: string): boolean
	return #one > #other
end)

--- Returns the value of a German word of several parts: "vierundzwanzig", "zweihundertfünfzig"; nil where it is none.
local function of_compound(word: string): number?
	local rest, whole, value, parts = word, 0, 0, 0
	while rest ~= "" do
		local taken: string? = nil
		for _, part in GERMAN do
			if string.sub(rest, 1, #part) == part then
				taken = part
				break
			end
		end
		if taken == nil then
			return nil
		end
		local one = VALUES[taken]
		if one == 1000 then
			whole, value = whole + math.max(value, 1) * 1000, 0
		elseif one == 100 then
			value = math.max(value, 1) * 100
		else
			value += one
		end
		parts += 1
		rest = string.sub(rest, #taken + 1)
		if string.sub(rest, 1, 3) == "und" then
			rest = string.sub(rest, 4)
		end
	end
	return if parts > 1 then whole + value else nil
end

--- What stands between the hours and the minutes of a time: "dix-sept heures trente".
local HOURS: { [string]: boolean } = { heure = true, heures = true, uhr = true }

--- A number while it is read: thousands that are done, and what comes behind them.
type Reading = { whole: number, value: number }

--- Adds a word's value to a number, or says that it begins another one.
local function joined(reading: Reading, value: number): boolean
	local open = reading.value % 100
	if value == 1000 then
		reading.whole, reading.value = reading.whole + math.max(reading.value, 1) * 1000, 0
	elseif value == 100 and reading.value < 10 then
		reading.value = math.max(reading.value, 1) * 100
	elseif value == 20 and open == 4 then
		reading.value += 76
	elseif value < 10 and open % 10 == 0 and open ~= 10 or value < 100 and open == 0 then
		reading.value += value
	elseif value >= 10 and value < 20 and (open == 60 or open == 80) then
		reading.value += value
	elseif value >= 7 and value < 10 and open % 20 == 10 and open > 60 or value >= 7 and value < 10 and open == 10 then
		reading.value += value
	else
		return false
	end
	return true
end

--- Returns the numbers that a text has in words.
local function written_out(line: string): { figures.Figure }
	local found: { figures.Figure } = {}
	local reading: Reading? = nil
	local last, hours = 0, 0
	local function close()
		last = if reading ~= nil then reading.whole + reading.value else 0
		if last > 0 then
			table.insert(found, { written = tostring(last), value = last })
		end
		if hours > 0 and last > 0 and last < 60 then
			table.insert(found, { written = `{hours}:{last}`, value = hours + last / 60 })
		end
		reading, hours = nil, 0
	end
	for word, behind in string.gmatch(text.fold(line), "([%a\128-\255]+)([^%a\128-\255]*)") do
		local value = VALUES[word]
		if value ~= nil then
			if reading == nil or not joined(reading, value) then
				if reading ~= nil then
					close()
				end
				local begun: Reading = { whole = 0, value = 0 }
				joined(begun, value)
				reading = begun
			end
		elseif JOINING[word] == nil then
			close()
			hours = if HOURS[word] and last < 24 then last else 0
			local whole = of_compound(word)
			if whole ~= nil then
				table.insert(found, { written = tostring(whole), value = whole })
			end
		end
		if string.find(behind or "", "[^%s%-]") ~= nil then
			close()
		end
	end
	close()
	return found
end

--- What a number ends with that says which one is meant: "fourteenth", "treizième", "vierundzwanzigsten".
local ENDINGS = { "th", "ieme", "sten", "ste", "ster", "ten", "te", "ter" }

--- Returns the value of a word that says which one is meant; nil where it does not.
local function of_ordinal(word: string): number?
	for _, ending in ENDINGS do
		local stem = string.match(word, `^(.+){ending}$`)
		local value = if stem ~= nil then VALUES[stem] or VALUES[`{stem}e`] or of_compound(stem) else nil
		if value ~= nil then
			return value
		end
	end
	return nil
end

--- Returns all numbers that a text names in words, however small.
function number_words.named(line: string): { figures.Figure }
	local found = written_out(line)
	local last = 0
	for word, behind in string.gmatch(text.fold(line), "([%a\128-\255]+)([^%a\128-\255]*)") do
		local value = NAMING[word] or of_ordinal(word)
		if value ~= nil then
			-- "Twenty-first".
			table.insert(found, { written = tostring(value), value = value })
			if last >= 20 and last % 10 == 0 and value < 10 then
				table.insert(found, { written = tostring(last + value), value = last + value })
			end
		end
		last = if string.find(behind or "", "[^%s%-]") == nil then VALUES[word] or 0 else 0
	end
	return found
end

--- Returns the numbers that a text names in words, from ten on: smaller ones are words more than figures.
function number_words.of(line: string): { figures.Figure }
	return list.filter(number_words.named(line), function(figure): boolean
		return figure.value >= figures.LEAST or string.find(figure.written, ":", 1, true) ~= nil
	end)
end

--- How "per cent" is written in the languages of the flows.
local PERCENT = "%|per ?cent|pour cent|prozent|por ciento|per cento"

--- Returns the percentages that a text names, in digits or in words.
function number_words.percentages(line: string): { figures.Figure }
	local found: { figures.Figure } = {}
	local folded = text.fold(line)
	for written in string.gmatch(folded, "(%d[%d%.,]*)[%s\194\160]*%%") do
		table.move(figures.of(written), 1, 1, #found + 1, found)
	end
	local from = 1
	local hit = text.search(folded, PERCENT, from)
	while hit ~= nil do
		local before = string.match(string.sub(folded, from, hit.first - 1), "[%w\128-\255%-]+%s+[%w\128-\255%-]+%s*$")
			or string.match(string.sub(folded, from, hit.first - 1), "[%w\128-\255%-]+%s*$")
			or ""
		local named = if string.find(before, "%d") ~= nil then figures.of(before) else number_words.of(before)
		table.move(named, #named, #named, #found + 1, found)
		from = hit.last + 1
		hit = text.search(folded, PERCENT, from)
	end
	return found
end

return number_words
