--!strict
--- A reply as the rules read it. Code becomes one word that says whether the developer wrote it, what they said themselves becomes
--- another, and each sentence is a question, a look that they are sent to take, an order or a statement. What stood there is kept:
--- whoever is told of a sentence sees its own words.

local intent = require("./intent")
local text = require("@nietz/text")
local word_lists = require("./word_lists")

local reply_text = {}

--- One sentence. `text` is what rules match, `shown` what was written. `terms` counts the technical words in it, and `new_terms`
--- those that the developer never used.
export type Sentence = {
	text: string,
	shown: string,
	kind: "question" | "look" | "order" | "statement",
	--- Whether it asks for something to be named, and not for yes or no.
	asks_what: boolean,
	--- Whether it asks what code would show, or sends the developer to look: there even new code gives nothing away.
	observes: boolean,
	--- Whether it stands behind an opening quotation mark, and the developer did not say it.
	quoted: boolean,
	--- Whether it is an order whose outcome is asked for at once: an experiment, and not yet a fix.
	experiment: boolean,
	--- Whether it states something about the developer's system that they did not say; the rules find out.
	asserts: boolean,
	terms: number,
	new_terms: number,
}
--- `blocks` are fenced blocks of code that the developer did not write, `rest` the reply without any block, `said` what the
--- developer said, for comparing.
export type Prepared = { sentences: { Sentence }, blocks: { string }, rest: string, said: string }

local FILE = word_lists.FILE
local FORMS = word_lists.FORMS
local CODE_CUE = word_lists.fill(FILE.code_cue)
local QUOTED_CUE = word_lists.fill(FILE.quoted_cue)
--- The marks of what was replaced are characters that no text has: those of private use, in the order of the replacements.
local FIRST_MARK = 0xE000
--- What stands before a space that was not written; two of it stand behind one.
local ADDED = utf8.char(FIRST_MARK)
local MARKED = "(%a+)(\xEE[\x80-\xBF][\x80-\xBF])"

--- Quotation marks that are no part of a sentence.
local QUOTE_MARKS = { "\u{ab}", "\u{bb}", "\u{201c}", "\u{201d}" }

local OPENED = '^["\xC2\xE2][\xAB\x80]?\x9C?%s*%a'

--- What was replaced so far, by number.
type Kept = { string }

local function keep(kept: Kept, word: string, original: string): string
	if #kept >= 4000 then
		return word
	end
	table.insert(kept, original)
	return word .. utf8.char(FIRST_MARK + #kept)
end

--- Puts back what was written.
local function restore(value: string, kept: Kept): string
	local out = value
	for _ = 1, 3 do
		out = string.gsub(out, MARKED, function(_: string, mark: string): string?
			return if mark == ADDED then nil else kept[utf8.codepoint(mark) - FIRST_MARK] or ""
		end)
	end
	out = string.gsub(string.gsub(out, " ?" .. ADDED .. ADDED, ""), ADDED .. " ?", "")
	return text.trim((string.gsub(out, "%s+", " ")))
end

local function without_marks(value: string): string
	return (string.gsub(value, "\xEE[\x80-\xBF][\x80-\xBF]", ""))
end

--- Returns a text as one line for comparing: small letters, single spaces.
function reply_text.normalize_line(value: string): string
	return intent.normalize((string.gsub(value, "[%s]+", " ")))
end

--- Returns code for comparing: small letters, no white space.
local function compact(value: string): string
	return string.lower((string.gsub(value, "%s+", "")))
end

--- Returns the words of a text alone, one space between them: quotes of somebody are rarely true to their punctuation.
local function words_alone(value: string): string
	return text.trim((string.gsub(intent.normalize(value), "[^%w]+", " ")))
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

--- Replaces the fenced blocks of a reply by a word. Returns the rest, and the blocks that are not the developer's.
local function remove_fences(reply: string, known: string): (string, { string })
	local found: { string } = {}
	local has_code = string.find(known, "[=({;]") ~= nil
	local rest = string.gsub(reply, "()```([^\n`]*)\n?(.-)```", function(at: number, info: string, block: string): string
		local before = intent.normalize(string.sub(reply, math.max(at - 160, 1), at - 1))
		local is_diff = string.find(info, "diff", 1, true) ~= nil or text.search(block, "(?m)^[+-][^+-].*\\n[+-]") ~= nil
		local is_quoted = not has_code and text.search(before, QUOTED_CUE) ~= nil and text.search(before, CODE_CUE) == nil
		if is_diff or (count_new_lines(block, known) > 0 and not is_quoted) then
			table.insert(found, text.trim(block))
		end
		return " kcode "
	end)
	return rest, found
end

--- Returns where the code ends of which a piece was found, and where it begins: names go on where no word would.
local function whole_code(value: string, first: number, last: number): (number, number)
	while first > 1 and string.find(string.sub(value, first - 1, first - 1), "[%w_.$@%]%)\"'/%-]") ~= nil do
		first -= 1
	end
	while last < #value and string.find(string.sub(value, last + 1, last + 1), "[%w_$@%[%]%(\"'/%-]") ~= nil do
		last += 1
	end
	return first, last
end

--- Replaces each piece of code by the word for its kind.
local function replace_code(value: string, known: string, kept: Kept): string
	local out = string.gsub(value, "`+([^`\n]+)`+", function(piece: string): string
		local word = placeholder(piece, known)
		return if word == piece then ` {piece} ` else ` {keep(kept, word, "`" .. piece .. "`")} `
	end)
	-- Code without backticks: calls with arguments, comparisons and assignments.
	for _, pattern in FILE.bare_code do
		local from = 1
		while true do
			local match = text.search(out, pattern, from)
			if match == nil then
				break
			end
			local piece = text.trim(match.text)
			local word = placeholder(piece, known)
			if word ~= "kcode" and word ~= piece then
				-- A piece of what the developer wrote is theirs, too, wherever the pattern began.
				local first, last = whole_code(out, match.first, match.last)
				if string.find(known, compact(string.sub(out, first, last)), 1, true) ~= nil then
					word = "kcode"
				end
			end
			word = if word == piece then piece else keep(kept, word, piece)
			word = (string.match(match.text, "^%s*") or "") .. word .. (string.match(match.text, "%s*$") or "")
			out = string.sub(out, 1, match.first - 1) .. word .. string.sub(out, match.last + 1)
			from = match.first + #word
		end
	end
	return out
end

--- Replaces quotes of what the developer said themselves by a word.
local function replace_quotes(value: string, said: string, kept: Kept): string
	local theirs = " " .. words_alone(said) .. " "
	local function replace_own_words(open: string, inner: string, close: string): string
		local plain = words_alone(inner)
		if #plain >= 2 and string.find(theirs, plain, 1, true) ~= nil then
			local stop = string.match(inner, "[.?!]%s*$") or ""
			return `{ADDED} {keep(kept, "theirwords", open .. inner .. close)}{stop} {ADDED}{ADDED}`
		end
		return open .. inner .. close
	end
	local out = string.gsub(value, '(")([^"\n]+)(")', replace_own_words)
	out = string.gsub(out, "(\u{201c})(.-)(\u{201d})", replace_own_words)
	return (string.gsub(out, "(\u{ab}%s*)(.-)(%s*\u{bb})", replace_own_words))
end

--- Counts the technical words of a sentence, and those among them that are new.
local function count_terms(plain: string, said: string): (number, number)
	local terms, fresh = 0, 0
	for word in string.gmatch(plain, "%a[%w%-]*") do
		if #word >= 3 and word_lists.is_term(word) then
			terms += 1
			fresh += if word_lists.was_said(word, said) then 0 else 1
		end
	end
	return terms, fresh
end

local function has_form(plain: string, pattern: string): boolean
	return text.search(plain, pattern) ~= nil
end

--- Splits a text into sentences. A colon ends one, too: the part before it only leads in.
local function split_sentences(value: string, said: string, kept: Kept): { Sentence }
	local found: { Sentence } = {}
	for _, line in text.lines(value) do
		local from = 1
		while from <= #line do
			local stop = text.search(line, [[(?:[.?!…]+["'”»)\]*_]*(?:\s|$)|[;:]\s+|\s+[—–]\s+)]], from)
			local last = if stop then stop.last else #line
			local marked = text.trim(string.sub(line, from, last))
			-- Without its accent, the French "where" would be "or".
			local worded = string.gsub(string.gsub(without_marks(marked), "o\u{f9}", "lequel"), "O\u{f9}", "lequel")
			local plain = string.gsub(intent.normalize(worded), "[*_]", "")
			for _, mark in QUOTE_MARKS do
				plain = string.gsub(plain, mark, "")
			end
			-- An order behind an opening quotation mark is one all the same.
			plain = text.trim((string.gsub(plain, "^[%s\"'(%[%-]+", "")))
			if plain ~= "" then
				local question = string.find(marked, "?", 1, true) ~= nil
				local looks = has_form(plain, FORMS.look) and not has_form(plain, FORMS.no_look)
				local kind: any = if question
					then "question"
					elseif looks then "look"
					elseif has_form(plain, FORMS.order) and not has_form(plain, FORMS.no_order) then "order"
					else "statement"
				local terms, fresh = count_terms(plain, said)
				table.insert(found, {
					text = plain,
					shown = restore(marked, kept),
					kind = kind,
					asks_what = question and has_form(plain, FORMS.what),
					observes = looks or has_form(plain, FORMS.observe) and not has_form(plain, FORMS.no_observe),
					quoted = string.find(marked, OPENED) ~= nil,
					experiment = false,
					asserts = false,
					terms = terms,
					new_terms = fresh,
				})
			end
			from = last + 1
		end
	end
	for index = #found - 1, 1, -1 do
		local one, next_one = found[index], found[index + 1]
		one.experiment = one.kind == "order" and next_one.asks_what and has_form(next_one.text, FORMS.outcome)
		if string.find(one.shown, "[;:—–]$") ~= nil then
			-- A short part that leads in to a question belongs to it, and so does one that asks. What a look leads in to is
			-- what is looked at.
			if next_one.kind == "question" and one.kind == "statement" then
				if has_form(one.text, FORMS.what) then
					one.kind, one.asks_what, next_one.asks_what = "question", true, true
				elseif #one.text < 40 then
					one.kind, one.asks_what = "question", next_one.asks_what
				end
			end
			next_one.observes = next_one.observes or one.kind == "look"
		end
	end
	return found
end

--- Returns a reply as the rules read it. `context` is all that the developer said and showed.
function reply_text.prepare(reply: string, context: string): Prepared
	local known, said = compact(context), reply_text.normalize_line(context)
	local kept: Kept = {}
	local rest, blocks = remove_fences(without_marks(reply), known)
	local marked = replace_code(replace_quotes(rest, said, kept), known, kept)
	return { sentences = split_sentences(marked, said, kept), blocks = blocks, rest = rest, said = said }
end

return reply_text
