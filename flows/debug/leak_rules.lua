--!strict
--- The first layer of the check of replies: rules that find an answer which a reply gives away, in English and French. The rules are
--- data (`leaks.yaml`). A hard one refuses a reply by itself. The others are notices: with a verifier they are hints for it, and where
--- there is none, their weights together decide.

local beliefs = require("./beliefs")
local intent = require("./intent")
local quotes = require("@nietz/quotes")
local reply_text = require("./reply_text")
local text = require("@nietz/text")
local word_lists = require("./word_lists")
local yaml = require("@nietz/yaml")

local leak_rules = {}

--- `excerpt` are the words of the reply that were noticed, as they were written; `own` says that they take up what the developer said.
export type Leak = { rule: string, reason: string, excerpt: string, weight: number, own: boolean? }
--- What the rules find in a reply: the leak that refuses it at once, or what was noticed, the weightiest first, and how much all of it
--- weighs. From 1 on it is a leak, where nobody else judges.
export type Reading = { hard: Leak?, noticed: { Leak }, weight: number }
type Rule = {
	rule: string,
	reason: string,
	["in"]: string?,
	hard: boolean,
	weight: number,
	pattern: string,
	unless: string?,
	terms: number,
	new_terms: number,
	most_terms: number,
	anchored: boolean,
}

local FILE = yaml.load("./leaks.yaml")
local WORDS = word_lists.FILE
local RULES: { Rule } = {}
for _, file in { FILE, yaml.load("./leak_signs.yaml") } do
	for _, rule in file.rules do
		table.insert(RULES, {
			rule = rule.rule,
			reason = rule.reason,
			["in"] = rule["in"],
			hard = rule.hard,
			weight = rule.weight,
			pattern = word_lists.any_of(rule.patterns),
			unless = if rule.unless then word_lists.fill(rule.unless) else nil,
			terms = rule.terms or 0,
			new_terms = rule.new_terms or 0,
			most_terms = rule.most_terms or math.huge,
			anchored = rule.anchored or false,
		})
	end
end
local INVESTIGATION = word_lists.fill(WORDS.investigation)
local ANCHOR = word_lists.fill(WORDS.anchor)
local STEP = word_lists.fill(WORDS.step)
local SUBJECT, FINE, VERB =
	word_lists.fill(FILE.assertion.subject), word_lists.fill(FILE.assertion.fine), word_lists.fill(FILE.assertion.verb)
--- The longest words of a reply that are told as a reason.
local EXCERPT = 80
--- How many notices a verifier is told.
local MOST_HINTS = 6
--- The weight by which a rule decides alone.
local DECIDES = 1
--- A sentence that is about so many things is the developer's own where this part of them is theirs: by so many letters of each.
local FEWEST_WORDS, LEAST_LETTERS, OWN_PART = 3, 4, 0.8

--- Whether a rule looks at such a sentence.
local function is_meant(place: string?, sentence: reply_text.Sentence): boolean
	if place == "statement" then
		return sentence.kind == "statement" or sentence.kind == "order"
	elseif place == "told" then
		return sentence.kind == "statement"
	elseif place == "what" then
		return sentence.kind == "question" and sentence.asks_what
	elseif place == "yes-no" then
		return sentence.kind == "question" and not sentence.asks_what
	elseif place == "unlooked" then
		return sentence.kind ~= "look" and not sentence.experiment
	elseif place == "experiment" then
		return sentence.experiment
	elseif place == "quoted" then
		return sentence.quoted and (sentence.kind == "order" or sentence.kind == "look")
	elseif place == "asserted" then
		return sentence.asserts
	elseif place == "unseen" then
		return not sentence.observes
	elseif place == "seen" then
		return sentence.observes
	end
	return place == nil or place == "any" or place == sentence.kind
end

--- Whether a sentence refers to the developer's system: an aphorism has neither code nor a word of the trade.
local function is_anchored(sentence: reply_text.Sentence): boolean
	return sentence.terms > 0 or text.search(sentence.text, ANCHOR) ~= nil
end

local function applies(rule: Rule, sentence: reply_text.Sentence): boolean
	return rule["in"] ~= "reply"
		and sentence.terms >= rule.terms
		and sentence.terms <= rule.most_terms
		and sentence.new_terms >= rule.new_terms
		and is_meant(rule["in"], sentence)
		and (not rule.anchored or is_anchored(sentence))
		and text.search(sentence.text, rule.pattern) ~= nil
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
local function asserts(sentence: reply_text.Sentence, said: string): boolean
	return sentence.kind ~= "question"
		and select(2, string.gsub(sentence.text, "%S+", "")) >= 4
		and text.search(sentence.text, SUBJECT) ~= nil
		and text.search(sentence.text, FINE) == nil
		and text.search(sentence.text, VERB) ~= nil
		and has_new_word(sentence.text, said)
end

--- The words by which somebody is spoken to, and those by which a sentence denies something.
local SPOKEN_TO = "^(?:and |but |so |et |mais |or |donc )*(?:you|your own|tu|vous)\\b"
local DENIES =
	"\\b(?:never|not|no|none|nothing|nobody|forget|forgot|forgets|without|instead|ne|n'|jamais|aucune?|rien|sans|oublies?|oubliez)\\b|n't\\b"

--- Whether a sentence only takes up what the developer said or showed: most of its words are theirs, or it tells them of a claim of
--- theirs ("You blame the TTL") in words of the trade that they used themselves. What denies something says more.
local function is_own(sentence: reply_text.Sentence, said: string): boolean
	if text.search(sentence.text, DENIES) ~= nil then
		return false
	elseif sentence.new_terms == 0 and text.search(sentence.text, SPOKEN_TO) ~= nil then
		return true
	end
	local words, theirs = beliefs.topics(sentence.text), 0
	for _, word in words do
		-- Code and quotations stand for what they replaced: `kcode` and `theirwords` are the developer's.
		local replaced = word == "kcode" or word == "theirwords"
		local stem = string.sub(word, 1, math.max(#word - 2, LEAST_LETTERS))
		theirs += if replaced or string.find(said, stem, 1, true) ~= nil then 1 else 0
	end
	return #words >= FEWEST_WORDS and theirs >= OWN_PART * #words
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

--- Returns what each sentence is and says, in one line, for rules that look at several together.
local function outline(sentences: { reply_text.Sentence }): string
	local parts = {}
	for _, sentence in sentences do
		local kind = if sentence.kind ~= "question" then sentence.kind elseif sentence.asks_what then "what" else "yes-no"
		table.insert(parts, `<{kind}> {sentence.text}`)
	end
	return table.concat(parts, " | ")
end

--- Returns what the rules find in a reply. `context` is all that the developer said and showed; `quote` a quote, as plain words, that
--- the reply carries.
function leak_rules.read(reply: string, context: string, quote: string?): Reading
	local prepared = reply_text.prepare(reply, context)
	local sentences: { reply_text.Sentence } = {}
	for _, sentence in prepared.sentences do
		if not is_quote(sentence.text, quote) then
			table.insert(sentences, sentence)
		end
	end
	local found: { [string]: boolean } = {}
	local noticed: { Leak } = {}
	local hard: Leak? = nil
	local function notice(rule: string, reason: string, excerpt: string, weight: number, is_hard: boolean, own: boolean?)
		if found[rule] then
			return
		end
		found[rule] = true
		local leak: Leak = { rule = rule, reason = reason, excerpt = text.truncate(excerpt, EXCERPT), weight = weight, own = own }
		table.insert(noticed, leak)
		hard = hard or if is_hard then leak else nil
	end
	if #prepared.blocks > 0 then
		notice("new-code", FILE.reasons.code, prepared.blocks[1], 0, true)
	end
	local step = first_step(prepared.rest)
	if step ~= nil then
		notice("steps", FILE.reasons.steps, step, 0, true)
	end
	local all = outline(sentences)
	if text.search(all, "<(what|yes-no|look)>") == nil then
		notice("no-question", FILE.reasons.question, text.trim(reply), 0, true)
	end
	local concept = asked_for_concept(context)
	for _, sentence in sentences do
		sentence.asserts = asserts(sentence, prepared.said)
		-- What is asked for may be explained.
		local own = concept and sentence.kind == "statement" or is_own(sentence, prepared.said)
		local is_look = text.search(sentence.text, INVESTIGATION) ~= nil
		for _, rule in RULES do
			local spared = is_look and WORDS.spared[rule.rule] or concept and rule.rule == "fact"
			if not spared and not found[rule.rule] and applies(rule, sentence) then
				notice(rule.rule, rule.reason, sentence.shown, rule.weight, rule.hard, own)
			end
		end
		if not concept and not is_look and sentence.asserts then
			notice("assertion", FILE.assertion.reason, sentence.shown, FILE.assertion.weight, false, own)
		end
	end
	for _, rule in RULES do
		if rule["in"] == "reply" and text.search(all, rule.pattern) ~= nil then
			if rule.unless == nil or text.search(all, rule.unless :: string) == nil then
				-- By a sign that does not decide alone, nothing can be asked about.
				notice(rule.rule, rule.reason, text.trim(reply), rule.weight, rule.hard, concept or rule.weight < DECIDES)
			end
		end
	end
	local weight = FILE.base
	for _, one in noticed do
		weight += one.weight
	end
	table.sort(noticed, function(one, other): boolean
		return one.weight > other.weight
	end)
	return { hard = hard, noticed = noticed, weight = weight }
end

--- Returns what the rules alone would refuse a reply for, or nil.
function leak_rules.find_leak(reply: string, context: string, quote: string?): Leak?
	local reading = leak_rules.read(reply, context, quote)
	if reading.hard ~= nil or reading.weight < 1 then
		return reading.hard
	end
	return reading.noticed[1]
end

--- Returns a leak as a reason: what it is, with the words that were read.
function leak_rules.told(leak: Leak): string
	return `{leak.reason} ("{leak.excerpt}")`
end

--- Returns what was noticed that may speak against a reply, for a verifier: as questions, the weightiest first, and without what only
--- takes up the developer's own words.
function leak_rules.hints(reading: Reading): { string }
	local hints: { string } = {}
	local told: { [string]: boolean } = {}
	for _, leak in reading.noticed do
		-- Several rules can notice the same words; they are told once.
		if leak.weight > 0 and not leak.own and not told[leak.excerpt] and #hints < MOST_HINTS then
			told[leak.excerpt] = true
			table.insert(hints, `"{leak.excerpt}": is it so that {leak.reason}, beyond what they have said and shown?`)
		end
	end
	return hints
end

return leak_rules
