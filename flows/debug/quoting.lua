--!strict
--- Quotes: chooses one that fits what was said and was not used yet, and finds out whether a reply really uses it.

local quotes = require("@nietz/quotes")
local random = require("@nietz/random")
local text = require("@nietz/text")

local quoting = {}

--- A reply with so many words of a quote in a row quotes it, where it does not have the whole.
local MIN_WORDS = 8

--- Returns a quote for this context that was not used yet, in the language where there is one, or nil.
function quoting.pick(context: string, lang: string, given: { string }): quotes.Quote?
	local found = quotes.find({ context = context, lang = lang })
	if #found == 0 then
		found = quotes.find({ context = context })
	end
	local fresh: { quotes.Quote } = {}
	for _, quote in found do
		if table.find(given, quote.text) == nil then
			table.insert(fresh, quote)
		end
	end
	return if #fresh > 0 then random.choice(fresh) else nil
end

local function plain_words(value: string): string
	local folded = string.gsub(text.fold(value), "[^%w]+", " ")
	return text.trim(folded)
end

--- Returns the part of a reply that is the quote, as plain words, or nil where the reply does not have it.
function quoting.quoted_part(reply: string, quote: quotes.Quote): string?
	local said, whole = " " .. plain_words(reply) .. " ", plain_words(quote.text)
	if string.find(said, " " .. whole .. " ", 1, true) ~= nil then
		return whole
	end
	local parts = string.split(whole, " ")
	for first = 1, #parts - MIN_WORDS + 1 do
		local run = table.concat(parts, " ", first, first + MIN_WORDS - 1)
		if string.find(said, " " .. run .. " ", 1, true) ~= nil then
			return run
		end
	end
	return nil
end

return quoting
