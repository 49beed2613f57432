--!strict
--- The first layer of the check of replies: rules that find an answer which a reply gives away, in English and French. The
--- rules are data (`leaks.yaml`). Here a reply is prepared for them: code becomes one word that says whether the developer
--- wrote it, quotes of the developer are taken out, and each sentence is a question or a statement.

local intent = require("./intent")
local quotes = require("@nietz/quotes")
local text = require("@nietz/text")
local yaml = require("@nietz/yaml")

local leak_rules = {}

export type Leak = { rule: string, reason: string, excerpt: string }
type Sentence = { text: string, question: boolean, shown: string }
type Rule = { rule: string, reason: string, ["in"]: string?, pattern: string, unless: string? }

local FILE = yaml.load("./leaks.yaml")

--- Makes `\w` and `\b` mean ASCII letters alone: texts have no accents here, and the compiled pattern stays small.
local function ascii_letters(pattern: string): string
	local out, in_class, at = {}, false, 1
	while at <= #pattern do
		local one, two = string.sub(pattern, at, at), string.sub(pattern, at, at + 1)
		if two == "\\w" then
			table.insert(out, if in_class then "a-z0-9_" else "[a-z0-9_]")
			at += 2
		elseif two == "\\b" then
			table.insert(out, "(?-u:\\b)")
			at += 2
		elseif one == "\\" then
			table.insert(out, two)
			at += 2
		else
			in_class = if one == "[" then true elseif one == "]" then false else in_class
			table.insert(out, one)
			at += 1
		end
	end
	return table.concat(out)
end

--- Replaces names of word lists, such as `{fix}`, by their words.
local function fill_lists(pattern: string): string
	local out = pattern
	for _ = 1, 4 do
		out = string.gsub(out, "{([%l_]+)}", function(name: string): string
			local list = FILE.lists[name]
			if list == nil then
				error(`leaks.yaml has no list "{name}"`, 0)
			end
			return "(?:" .. (string.gsub(list, "%s+", "|")) .. ")"
		end)
	end
	return ascii_letters((string.gsub(out, "\n%s*", "")))
end

local RULES: { Rule } = {}
for _, rule in FILE.rules do
	for _, pattern in rule.patterns do
		table.insert(RULES, {
			rule = rule.rule,
			reason = rule.reason,
			["in"] = rule["in"],
			pattern = fill_lists(pattern),
			unless = if rule.unless then fill_lists(rule.unless) else nil,
		})
	end
end
local INVESTIGATION = fill_lists(FILE.investigation)
local CODE_CUE = fill_lists(FILE.code_cue)
local QUOTED_CUE = fill_lists(FILE.quoted_cue)
local STEP = fill_lists(FILE.step)
local SUBJECT, FINE, VERB = fill_lists(FILE.assertion.subject), fill_lists(FILE.assertion.fine), fill_lists(FILE.assertion.verb)

--- Returns a text as one line for comparing: small letters, single spaces.
local function normalize_line(value: string): string
	return intent.normalize((string.gsub(value, "[%s]+", " ")))
end

--- Returns code for comparing: small letters, no white space.
local function compact(value: string): string
	return string.lower((string.gsub(value, "%s+", "")))
end

local IDENTIFIER = "^[%w_$@.:#/-]+$"
local CALL = "^[%w_$@.:]+%(%s*%)$"

--- Whether a piece of code has only names of the developer's and new values: a call to try out.
local function is_sample(piece: string, known: string): boolean
	local inside = string.match(piece, "^[%w_.$]+%((.*)%)$")
	local bare = string.gsub(string.gsub(if inside then inside else piece, '"[^"]*"', ""), "'[^']*'", "")
	local name = string.match(piece, "^([%w_.$]+)%(")
	local values_alone = string.match(bare, "[%a_]") == nil
	return values_alone and (name == nil or string.find(known, string.lower(name), 1, true) ~= nil)
end

--- Returns the word that stands for a piece of code: `kcode` where the developer wrote it, `icode` for a name or a
--- literal, `ncode` for any other.
local function placeholder(piece: string, known: string): string
	local plain = compact(piece)
	if plain == "" or string.find(known, plain, 1, true) ~= nil then
		return "kcode"
	elseif text.search(text.trim(piece), FILE.plain_names) ~= nil then
		return piece
	elseif is_sample(piece, known) then
		return "kcode"
	elseif string.match(piece, IDENTIFIER) ~= nil or string.match(piece, CALL) ~= nil then
		return "icode"
	end
	return "ncode"
end

--- Returns the lines of a fenced block that the developer did not write.
local function count_new_lines(block: string, known: string): number
	local count = 0
	for _, line in text.lines(block) do
		local bare = string.gsub(line, "^%s*%d+%s*[|:]?%s%s?", "")
		local looks = text.search(text.trim(bare), FILE.look_command) ~= nil
		if #string.gsub(compact(bare), "[^%w]", "") >= 3 and string.find(known, compact(bare), 1, true) == nil and not looks then
			count += 1
		end
	end
	return count
end

--- Replaces the fenced blocks of a reply by a word. Returns the rest, and the leak of a block that gives something away.
local function remove_fences(reply: string, known: string): (string, Leak?)
	local found: Leak? = nil
	local has_code = string.find(known, "[=({;]") ~= nil
	local before = ""
	local rest = string.gsub(reply, "()```([^\n`]*)\n?(.-)```", function(at: number, info: string, block: string): string
		local fresh = count_new_lines(block, known)
		before = intent.normalize(string.sub(reply, math.max(at - 160, 1), at - 1))
		local is_diff = string.find(info, "diff", 1, true) ~= nil or text.search(block, "(?m)^[+-][^+-].*\\n[+-]") ~= nil
		local is_quoted = not has_code and text.search(before, QUOTED_CUE) ~= nil and text.search(before, CODE_CUE) == nil
		if found == nil and (is_diff or (fresh > 0 and not is_quoted)) then
			found = { rule = "new-code", reason = FILE.reasons.code, excerpt = text.truncate(text.trim(block), 80) }
		end
		return " kcode "
	end)
	return rest, found
end

--- Replaces each piece of code in a sentence by the word for its kind.
local function replace_code(value: string, known: string): string
	local out = string.gsub(value, "`+([^`\n]+)`+", function(piece: string): string
		return " " .. placeholder(piece, known) .. " "
	end)
	-- Code without backticks: calls with arguments, comparisons and assignments.
	for _, pattern in FILE.bare_code do
		local from = 1
		while true do
			local match = text.search(out, pattern, from)
			if match == nil then
				break
			end
			local word = placeholder(text.trim(match.text), known)
			word = (string.match(match.text, "^%s*") or "") .. word .. (string.match(match.text, "%s*$") or "")
			out = string.sub(out, 1, match.first - 1) .. word .. string.sub(out, match.last + 1)
			from = match.first + #word
		end
	end
	return out
end

--- Replaces quotes of what the developer said themselves by a word.
local function replace_quotes(value: string, said: string): string
	local function replace_own_words(open: string, inner: string, close: string): string
		local plain = normalize_line(inner)
		if #plain >= 2 and string.find(said, plain, 1, true) ~= nil then
			return " theirwords "
		end
		return open .. inner .. close
	end
	local out = string.gsub(value, '(")([^"\n]+)(")', replace_own_words)
	out = string.gsub(out, "(\u{201c})(.-)(\u{201d})", replace_own_words)
	return (string.gsub(out, "(\u{ab}%s*)(.-)(%s*\u{bb})", replace_own_words))
end

--- Splits a text into sentences. A colon ends one, too: the part before it only leads in.
local function split_sentences(value: string): { Sentence }
	local found: { Sentence } = {}
	for _, line in text.lines(value) do
		local from = 1
		while from <= #line do
			local stop = text.search(line, [[(?:[.?!…]+["'”»)\]*_]*(?:\s|$)|[;:]\s+|\s+[—–]\s+)]], from)
			local last = if stop then stop.last else #line
			local shown = text.trim(string.sub(line, from, last))
			local plain = text.trim((string.gsub(intent.normalize(shown), "[*_]", "")))
			if plain ~= "" then
				table.insert(found, { text = plain, question = string.find(shown, "?", 1, true) ~= nil, shown = shown })
			end
			from = last + 1
		end
	end
	-- A short part that leads in to a question belongs to it.
	for index = #found - 1, 1, -1 do
		local one = found[index]
		if string.find(one.shown, "[;:—–]$") ~= nil and found[index + 1].question and #one.text < 40 then
			one.question = true
		end
	end
	return found
end

local function applies(rule: Rule, sentence: Sentence): boolean
	local where = rule["in"]
	if where == "statement" and sentence.question or where == "question" and not sentence.question then
		return false
	end
	return text.search(sentence.text, rule.pattern) ~= nil
		and (rule.unless == nil or text.search(sentence.text, rule.unless :: string) == nil)
end

--- Whether a sentence has a word that the developer never used.
local function has_new_word(sentence: string, said: string): boolean
	for word in string.gmatch(sentence, "[%a]+") do
		-- Endings differ, so only the beginning of a word counts.
		local stem = string.sub(word, 1, math.max(#word - 2, FILE.assertion.letters - 1))
		if #word >= FILE.assertion.letters and word ~= "theirwords" and string.find(said, stem, 1, true) == nil then
			return true
		end
	end
	return false
end

--- Whether a sentence states something about the developer's system that they did not say.
local function asserts(sentence: Sentence, said: string): boolean
	return not sentence.question
		and select(2, string.gsub(sentence.text, "%S+", "")) >= 4
		and text.search(sentence.text, SUBJECT) ~= nil
		and text.search(sentence.text, FINE) == nil
		and text.search(sentence.text, VERB) ~= nil
		and has_new_word(sentence.text, said)
end

--- Returns all quotes as plain words, each between spaces.
local function all_quotes(): string
	local all = {}
	for _, quote in quotes.find() do
		table.insert(all, (string.gsub(text.fold(quote.text), "[^%w]+", " ")))
	end
	return table.concat(all, " \n ")
end
local QUOTES: string? = nil

--- Whether a sentence is one of the quotes, or a part of one.
local function is_quote(sentence: string, carried: string?): boolean
	local bare = text.trim((string.gsub(sentence, "[^%w]+", " ")))
	if carried ~= nil and string.find(carried, bare, 1, true) ~= nil then
		return true
	end
	QUOTES = QUOTES or all_quotes()
	return #bare > 20 and string.find(QUOTES :: string, bare, 1, true) ~= nil
end

--- Whether the developer's last line asks for a concept, which may be explained.
local function asked_for_concept(context: string): boolean
	local lines = text.lines(text.trim(context))
	return #lines > 0 and intent.asks_for_concept((string.gsub(lines[#lines], "^%w+:%s*", "")))
end

--- Returns the first step where a reply lists several, or nil.
local function first_step(reply: string): string?
	local count, first = 0, ""
	for _, line in text.lines(reply) do
		local plain = intent.normalize(line)
		if text.search(plain, STEP) ~= nil and string.find(plain, "?", 1, true) == nil then
			count += 1
			first = if first == "" then line else first
		end
	end
	return if count >= 2 then first else nil
end

--- Returns the answer that a reply gives away, by the first rule that finds one, or nil.
---
--- `context` is all that the developer said and showed; `quote` a quote, as plain words, that the reply carries.
function leak_rules.find_leak(reply: string, context: string, quote: string?): Leak?
	if string.find(reply, "?", 1, true) == nil then
		return { rule = "no-question", reason = FILE.reasons.question, excerpt = text.truncate(text.trim(reply), 80) }
	end
	local known, said = compact(context), normalize_line(context)
	local rest, found = remove_fences(reply, known)
	if found ~= nil then
		return found
	end
	local step = first_step(rest)
	if step ~= nil then
		return { rule = "steps", reason = FILE.reasons.steps, excerpt = text.truncate(step, 80) }
	end
	local concept = asked_for_concept(context)
	for _, sentence in split_sentences(replace_code(replace_quotes(rest, said), known)) do
		if is_quote(sentence.text, quote) then
			continue
		end
		local is_look = text.search(sentence.text, INVESTIGATION) ~= nil
		for _, rule in RULES do
			local spared = is_look and FILE.spared[rule.rule] or concept and rule.rule == "fact"
			if applies(rule, sentence) and not spared then
				return { rule = rule.rule, reason = rule.reason, excerpt = text.truncate(sentence.shown, 80) }
			end
		end
		if not concept and not is_look and asserts(sentence, said) then
			return { rule = "assertion", reason = FILE.assertion.reason, excerpt = text.truncate(sentence.shown, 80) }
		end
	end
	return nil
end

return leak_rules
