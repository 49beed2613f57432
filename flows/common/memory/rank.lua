--!strict
--- Which failures of the past are like one of now, and how much: by place (file, function, what the fix changed), by words
--- that are rare in the memory (of the message, the test, the cause and the fix), by the way in which values differ, and by
--- the kind of error. None of these is enough by itself, and that two assertions compare X with Y is no sign at all. Most
--- likenesses of cause cannot be read from an output: what is sure is little, and the rest are candidates for a model.

local mistakes = require("./mistakes")
local report = require("./parsers/report")
local symptoms = require("./symptoms")
local words = require("./words")

local rank = {}

--- A failure with what is compared of it.
export type Side = {
	error_type: string,
	test_name: string,
	--- The words of the message, of the test and of the trace.
	message: words.Set,
	test: words.Set,
	trace: words.Set,
	--- The words of paths, which tell where and not what.
	place: words.Set,
	--- Files of the trace and of the place, those of tests apart; functions with their files.
	code: words.Set,
	tests: words.Set,
	spots: words.Set,
	symptom: string?,
	mistakes: mistakes.Signs,
	--- Endings of file names, which tell the language.
	languages: words.Set,
	--- Whether a person told it, whose words name places and causes alike.
	described: boolean,
}

--- What was found out and done about failures of the past.
export type Told = {
	cause: words.Set,
	plain: string,
	mistakes: mistakes.Signs,
	category: string?,
	--- The files that the fix changed, and the one that the session was about.
	changed: words.Set,
}

--- From this on a past failure is offered.
rank.ENOUGH = 0.8
--- From this on it may be like, which only somebody who reads the code can tell; less is another language with nothing in common.
rank.POSSIBLE = -0.45
--- How many failures of a run are compared: one cause often fails many tests, so the first ones stand for the rest.
rank.MAX_FAILURES = 5

--- How much each sign counts.
local WEIGHTS = {
	same_test = 0.6,
	same_spot = 0.6,
	changed_file = 0.45,
	code_file = 0.3,
	sister_file = 0.2,
	test_file = 0.1,
	kind = 0.1,
	named_kind = 0.35,
	other_kind = -0.05,
	symptom = 0.5,
	other_symptom = -0.3,
	mistake = 1.1,
	other_mistake = -0.4,
	other_language = -0.5,
}

--- One language by several endings.
local LANGUAGES = { ts = "js", tsx = "js", jsx = "js", mjs = "js", cjs = "js", mts = "js", kt = "java" } :: { [string]: string }

--- How much a word counts by where it stands on either side.
local MESSAGE, TEST, TRACE, CAUSE = 1, 0.5, 0.6, 0.8

--- The most that words alone can say of a failure, and of one that a person describes; and from what on a mistake and a cause are
--- taken to speak of a failure.
local MOST_BY_WORDS, MOST_BY_DESCRIPTION, SURE_MISTAKE, SURE_CAUSE = 0.7, 1.2, 0.6, 0.35

local function base(path: string): string
	return string.match(path, "([^/]+)$") or path
end

--- Whether two paths are one, where one of them may be the end of the other.
local function same_path(a: string, b: string): boolean
	return a == b or string.sub(a, -#b - 1) == "/" .. b or string.sub(b, -#a - 1) == "/" .. a
end

local function has_path(set: words.Set, path: string): boolean
	for other in set do
		if same_path(path, other) then
			return true
		end
	end
	return false
end

--- Returns the places that a text names: files with an extension and a line.
local function named_places(trace: string, visit: (file: string, line: string) -> ())
	for file, line in string.gmatch(trace, "([%w_@%-%./]+%.%a%w*):(%d+)") do
		visit((string.gsub(string.gsub(file :: string, "^file://", ""), "^%./", "")), line :: string)
	end
	for file, line in string.gmatch(trace, 'File "([^"]+)", line (%d+)') do
		visit(file :: string, line :: string)
	end
end

--- Prepares a failure for many comparisons. What mistakes it may show is asked of one of now alone.
function rank.side(failure: report.Failure, is_past: boolean?): Side
	local side: Side = {
		error_type = failure.error_type,
		test_name = failure.test_name,
		message = words.of(failure.error_message),
		test = {},
		trace = {},
		place = {},
		code = {},
		tests = {},
		spots = {},
		symptom = nil,
		mistakes = {},
		languages = {},
		described = false,
	}
	local function add_place(file: string, line: string?)
		if report.is_test(file) then
			side.tests[file] = true
		else
			side.code[file] = true
			if line ~= nil then
				side.spots[`{base(file)}:{line}`] = true
			end
		end
	end
	local trace = failure.stack_trace or ""
	named_places(`{trace}\n{failure.error_message}`, add_place)
	local place = failure.source_location
	if place ~= nil and place.file ~= nil then
		add_place(place.file, if place.line then tostring(place.line) else nil)
		if place["function"] ~= nil then
			side.spots[`{base(place.file)} {place["function"]}`] = true
		end
	end
	if failure.test_file ~= nil then
		side.tests[failure.test_file] = true
	end
	local paths: { string } = {}
	for _, set in { side.code, side.tests } do
		for path in set do
			table.insert(paths, path)
		end
	end
	side.place = words.of_paths(paths)
	-- A test's name begins with its file and its groups in some runners: those are places.
	local own = string.match(failure.test_name, "([^:›>%.]+)$") or failure.test_name
	side.test = words.of(own)
	for word in words.of_paths({ string.sub(failure.test_name, 1, -#own - 1) }) do
		side.place[word] = true
	end
	for word in words.of(trace) do
		side.trace[word] = true
	end
	local expected, actual = failure.expected, failure.actual
	if expected == nil or actual == nil then
		expected, actual = report.expected_and_actual(failure.error_message)
	end
	side.symptom = symptoms.of(expected, actual)
	if not is_past then
		local shown = `{failure.test_name}\n{failure.error_message}\n{trace}`
		side.mistakes = mistakes.shown(shown, side.symptom, if side.symptom then symptoms.weight(side.symptom) else 0)
	end
	for _, path in paths do
		local ending = string.match(path, "%.(%a%w*)$")
		if ending ~= nil then
			side.languages[LANGUAGES[ending] or ending] = true
		end
	end
	return side
end

--- Prepares a failure that a person describes; `kind` is the kind of error that the words name, `Other` if they name none.
function rank.described(description: string, kind: string): Side
	local side = rank.side({ test_name = "", error_type = kind, error_message = description })
	side.described, side.symptom = true, nil
	for path in string.gmatch(description, "[%w_%-%./]+%.%a%w*") do
		if report.is_test(path) then
			side.tests[path] = true
		else
			side.code[path] = true
		end
	end
	return side
end

--- Prepares what was told of a past failure: cause, strategy, fix and files.
function rank.told(texts: { string }, category: string?, changed: { string }): Told
	local plain = table.concat(texts, "\n")
	local files: words.Set = {}
	for _, path in changed do
		files[path] = true
	end
	return { cause = words.of(plain), plain = plain, mistakes = mistakes.told(plain), category = category, changed = files }
end

--- All words of a past failure, for counting how rare they are.
function rank.all_words(side: Side, told: Told): words.Set
	local all: words.Set = {}
	for _, set in { side.message, side.test, side.trace, side.place, told.cause } do
		for word in set do
			all[word] = true
		end
	end
	for name in told.mistakes do
		all["mistake " .. name] = true
	end
	return all
end

--- Returns the words of a side with how much each counts. Those of its paths say where and not what: places are compared
--- as such, and not by words.
local function weighed(side: Side): { [string]: number }
	local found: { [string]: number } = {}
	local function add(set: words.Set, count: number)
		for word in set do
			found[word] = math.max(found[word] or 0, count)
		end
	end
	add(side.trace, TRACE)
	add(side.test, TEST)
	add(side.message, MESSAGE)
	for word in side.place do
		found[word] = nil
	end
	return found
end

--- Returns how much two failures share by their words, and how much of what now fails the past cause and fix name.
local function by_words(now: Side, past: Side, told: Told, frequencies: words.Frequencies): (number, number)
	local mine, theirs = weighed(now), weighed(past)
	local causes: { [string]: number } = {}
	for word in told.cause do
		if now.described or not past.place[word] then
			causes[word] = CAUSE
		end
	end
	if now.described then
		for word in past.place do
			causes[word] = CAUSE
		end
	end
	local shared, of_cause, whole = 0, 0, 0
	for word, count in mine do
		local weight = words.weight(frequencies, word) * count
		whole += weight
		shared += weight * math.max(theirs[word] or 0, causes[word] or 0)
		of_cause += weight * (causes[word] or 0)
	end
	-- A long message shares some word with anything, and a short one is soon shared as a whole: both have to be enough.
	local most = if now.described then MOST_BY_DESCRIPTION else MOST_BY_WORDS
	local function strength(sum: number): number
		return if whole == 0 then 0 else math.min(most, 1.6 * (1 - math.exp(-sum / 1.5)) * math.sqrt(sum / whole))
	end
	return strength(shared), strength(of_cause)
end

--- Returns how much two failures share by their places.
local function by_place(now: Side, past: Side, told: Told): number
	local best = 0
	if past.test_name ~= "" and now.test_name == past.test_name then
		best = WEIGHTS.same_test
	end
	for spot in now.spots do
		if past.spots[spot] then
			best = math.max(best, WEIGHTS.same_spot)
		end
	end
	for path in now.code do
		if has_path(told.changed, path) then
			best = math.max(best, WEIGHTS.changed_file)
		elseif has_path(past.code, path) then
			best = math.max(best, WEIGHTS.code_file)
		else
			for other in told.changed do
				if base(other) == base(path) then
					best = math.max(best, WEIGHTS.sister_file)
				end
			end
		end
	end
	for path in now.tests do
		if has_path(past.tests, path) then
			best = math.max(best, WEIGHTS.test_file)
		end
	end
	return best
end

--- Returns how much the kinds of mistakes that show speak for the cause of then, or against it.
local function by_mistake(now: Side, told: Told, frequencies: words.Frequencies): number
	local shared = mistakes.shared(now.mistakes, told.mistakes, function(name)
		return words.weight(frequencies, "mistake " .. name)
	end)
	if shared > 0 then
		return shared * WEIGHTS.mistake
	end
	return if mistakes.differ(now.mistakes, told.mistakes) then WEIGHTS.other_mistake else 0
end

--- Returns how much the ways in which values differ, and the kinds of errors, speak for one cause.
local function by_kind(now: Side, past: Side): number
	local score = 0
	if now.symptom ~= nil then
		if now.symptom == past.symptom then
			score += symptoms.weight(now.symptom) * WEIGHTS.symptom
		elseif past.symptom ~= nil then
			score += WEIGHTS.other_symptom
		end
	end
	if next(now.languages) ~= nil and next(past.languages) ~= nil then
		local same = false
		for language in now.languages do
			same = same or past.languages[language] == true
		end
		score += if same then 0 else WEIGHTS.other_language
	end
	if now.described then
		-- Who describes a failure seldom names its kind, and then means it.
		score += if now.error_type ~= "Other" and now.error_type == past.error_type then WEIGHTS.named_kind else 0
	elseif now.error_type ~= past.error_type then
		score += WEIGHTS.other_kind
	elseif now.error_type ~= "AssertionError" and now.error_type ~= "Other" then
		score += WEIGHTS.kind
	end
	return score
end

--- Whether it is the same failure again: the same test with a message that says the same, numbers aside.
local function is_again(now: Side, past: Side): boolean
	if now.test_name == "" or now.test_name ~= past.test_name or now.error_type ~= past.error_type then
		return false
	end
	for word in now.message do
		if not past.message[word] then
			return false
		end
	end
	return true
end

--- Whether the cause of then speaks of what fails now: the same kind of error shows the mistake that was told, and the cause
--- names what it shows it in.
local function is_told(now: Side, past: Side, of_mistake: number, of_cause: number): boolean
	return of_mistake >= SURE_MISTAKE and of_cause >= SURE_CAUSE and now.error_type == past.error_type
end

--- The parts of a score, what they come to, and what they might come to for somebody who reads the code.
export type Score = { words: number, place: number, kind: number, mistake: number, cause: number, possible: number, total: number }

--- Returns how much a past failure is like one of now.
function rank.score(now: Side, past: Side, told: Told, frequencies: words.Frequencies): Score
	local of_words, of_cause = by_words(now, past, told, frequencies)
	local of_place, of_kind = by_place(now, past, told), by_kind(now, past)
	local of_mistake = by_mistake(now, told, frequencies)
	local possible = of_words + of_place + of_kind + of_mistake
	local total = possible
	if is_again(now, past) then
		total = math.max(total, rank.ENOUGH)
	elseif not now.described and not is_told(now, past, of_mistake, of_cause) then
		-- What is alike in place and words alone is another mistake in the same code more often than not.
		total = math.min(total, rank.ENOUGH - 0.05)
	end
	return {
		words = of_words,
		place = of_place,
		kind = of_kind,
		mistake = of_mistake,
		cause = of_cause,
		possible = math.max(possible, total),
		total = total,
	}
end

return rank
