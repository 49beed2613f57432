--!strict
--- The words of a failure that say something: what runners and runtimes write around them, forms of assertions, numbers and
--- words of every program carry nothing. What is left is weighed by how rare it is in the memory.

local errors = require("./errors")
local text = require("@nietz/text")

local words = {}

--- A text's words by their stems.
export type Set = { [string]: boolean }

--- What runtimes and runners write whatever the cause is. Names beside it stay: `reading 'options'` leaves `options`.
local FORMS = {
	"cannot read properties of undefined",
	"cannot read properties of null",
	"cannot read property",
	"cannot set properties of",
	"(reading '",
	"'nonetype' object has no attribute",
	"object has no attribute",
	"has no attribute",
	"object is not subscriptable",
	"object is not callable",
	"object is not iterable",
	"importerror while importing test module",
	"no module named",
	"cannot find module",
	"cannot import name",
	"from partially initialized module",
	"most likely due to a circular import",
	"runtime error",
	"index out of range",
	"with length",
	"index out of bounds",
	"out of bounds for length",
	"the len is",
	"but the index is",
	"invalid memory address or nil pointer dereference",
	"nil pointer dereference",
	"called `result::unwrap()` on an `err` value",
	"called `option::unwrap()` on a `none` value",
	"no such file or directory",
	"kind: notfound",
	"os {",
	"exceeded timeout of",
	"ms for a test",
	"ms for a hook",
	"test timed out",
	"data race",
	"race detected during execution of test",
	"goroutine",
	"cannot invoke",
	"because the return value of",
	"because",
	"is null",
	"is undefined",
	"is not defined",
	"is not a function",
	"object.is equality",
	"deep equality",
	"strictly deep-equal",
	"strictly equal",
	"loosely deep-equal",
	"assertion `left == right` failed",
	"left contains",
	"right contains",
	"more item",
	"first extra item",
	"at index",
	"use -v to get more diff",
	"full diff",
	"where",
	"note: run with `rust_backtrace=1`",
	"environment variable to display a backtrace",
	"comparison failed",
}

--- Words that stand in failures, code and prose of every kind.
local EMPTY: Set = {}
for _, word in
	string.split(
		"a an and the of to in on at by is it its be as or if so no not but for from with without that this these those than then "
			.. "there their they them what which when where while who why how was were are will would should could can cannot may might "
			.. "must does did done do has have had been being into onto over under out off up down only just also too very more most less "
			.. "least some any each every all both one two three own other another such same like still yet even ever never always because "
			.. "before after again between through during until since about against upon per via you your our we us he she his her my me "
			.. "instead rather whether else otherwise however although though get gets got give gives given take takes taken took make makes "
			.. "made put puts use uses used using say says said let lets "
			.. "un une le la les des du de et ou où en au aux ce cet cette ces dans par pour sur avec sans qui que quoi dont est sont sera "
			.. "être été pas plus ne se sa son ses leur leurs mon ma mes ton ta tes nous vous ils elles elle il on quand comment pourquoi si "
			.. "mais donc car tout tous toute toutes comme fait faire "
			.. "assert assertion asserts asserted expect expects expected actual received got want wanted equal equals equality strict strictly "
			.. "deep value values left right panic panicked thread main test tests tested testing spec suite describe should fail fails failed "
			.. "failing failure failures pass passes passed error errors exception exceptions err ok caught throw throws thrown raise raises "
			.. "raised wrong broken broke break bug bugs fix fixes fixed issue problem problems mend mended "
			.. "true false null none nil undefined nan object objects anonymous context self this cls args kwargs class def func fn function "
			.. "functions method methods const var new return returns returned returning import imports module modules package line lines "
			.. "file files src lib app java org com junit jupiter api internal node_modules site packages python python3 pytest unittest jest "
			.. "vitest mocha golang rust cargo crate std core mod assertionerror assertionfailederror opentest4j comparisonfailure tobe toequal "
			.. "tostrictequal tomatchobject tohavelength diff ms sec secs seconds error_message message messages code exit status call calls "
			.. "called calling caller run runs ran running was",
		" "
	)
do
	EMPTY[word] = true
end

--- Words that say a little: what programs are made of.
local COMMON: Set = {}
for _, word in
	string.split(
		"index list lists array arrays map maps dict set sets item items entry entries element elements key keys name names number "
			.. "numbers string strings text texts int integer float type types length size count total sum result results data input output "
			.. "first last next start end begin empty missing found find add adds added remove removed delete create created update updated "
			.. "read reads write writes written load save store stored parse parsed parser format check checks checked default defaults option "
			.. "options config request response server client user users id ids path paths field fields column row rows case cases change changed "
			.. "handle handler handles handled work works base property properties argument arguments parameter parameters variable",
		" "
	)
do
	COMMON[word] = true
end

--- How much a common word counts beside one that is not.
local COMMON_WEIGHT = 0.35

--- Returns a word without the usual endings of English, so that `expires` and `expired` are one.
local function stem(word: string): string
	local base = word
	for _, pair in { { "ies$", "y" }, { "ing$", "" }, { "ed$", "" }, { "s$", "" } } do
		local cut, times = string.gsub(base, pair[1], pair[2])
		if times > 0 and #cut >= 3 and not string.find(base, "ss$") then
			base = cut
			break
		end
	end
	if #base > 4 then
		base = string.gsub(base, "e$", "")
		base = string.gsub(base, "([^aeiou])%1$", "%1")
	end
	return base
end

local COMMON_STEMS: Set = {}
for word in COMMON do
	COMMON_STEMS[stem(word)] = true
end

local function add(set: Set, word: string)
	if #word >= 3 and not EMPTY[word] then
		set[stem(word)] = true
	end
end

--- Adds an identifier: its parts, and where there are several, all of it.
local function add_identifier(set: Set, name: string)
	local parts = string.gsub(string.gsub(name, "(%l)(%u)", "%1_%2"), "(%u)(%u%l)", "%1_%2")
	local count = 0
	for part in string.gmatch(parts, "[^_%d]+") do
		count += 1
		add(set, text.fold(part))
	end
	local whole = string.lower(name)
	if count > 1 and #whole >= 6 and not EMPTY[whole] then
		set[whole] = true
	end
end

--- Returns the words of a text that say something.
function words.of(value: string): Set
	local low = string.lower(value)
	local kept = value
	for _, form in FORMS do
		-- The form is found in lower case and taken out of the text itself, whose capitals tell where names are joined.
		local from = 1
		while true do
			local first, last = string.find(low, form, from, true)
			if first == nil or last == nil then
				break
			end
			local blank = string.rep(" ", last - first + 1)
			kept = string.sub(kept, 1, first - 1) .. blank .. string.sub(kept, last + 1)
			low = string.sub(low, 1, first - 1) .. blank .. string.sub(low, last + 1)
			from = last + 1
		end
	end
	local set: Set = {}
	for name in string.gmatch(kept, "[%a_\128-\255][%w_\128-\255]*") do
		if not errors.is_common_name(name) then
			add_identifier(set, name)
		end
	end
	return set
end

--- Returns the words of the paths and names of tests: the parts of a project that they are about.
function words.of_paths(paths: { string }): Set
	local set: Set = {}
	for _, path in paths do
		for part in string.gmatch(path, "[^/%.:]+") do
			add_identifier(set, part)
		end
	end
	return set
end

--- How often words stand in a memory.
export type Frequencies = { entries: number, of: { [string]: number } }

--- As many entries that hold none of its words are counted with a memory: in one with a single session, too, a word that
--- stands there is known to be rare in general.
local BACKGROUND = 20

--- Counts in how many sets each word stands.
function words.frequencies(sets: { Set }): Frequencies
	local counted: { [string]: number } = {}
	for _, set in sets do
		for word in set do
			counted[word] = (counted[word] or 0) + 1
		end
	end
	return { entries = #sets + BACKGROUND, of = counted }
end

--- Returns how much a word says, from 0 to 1: the more, the rarer it is.
function words.weight(frequencies: Frequencies, word: string): number
	local count = frequencies.of[word] or 0
	local most = math.log(1 + (frequencies.entries + 0.5) / 0.5)
	local rarity = math.log(1 + (frequencies.entries - count + 0.5) / (count + 0.5)) / most
	return rarity * (if COMMON_STEMS[word] then COMMON_WEIGHT else 1)
end

return words
