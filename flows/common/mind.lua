--!strict
--- How much a model can hold at once: two sizes of mind. A large one gets the whole conversation and writes freely; a small one
--- drowns in that, and gets crutches: less to read, shorter lines, rules that check its words. Which of the two a model is stands
--- here alone, so that no other place guesses.

local list = require("./list")
local llm = require("@nietz/llm")
local text = require("@nietz/text")

local mind = {}

export type Size = "small" | "large"

--- What a small mind is held to, by name. A large one has none of these.
export type Crutches = {
	--- How many answered iterations are given word for word.
	recent: number,
	--- How many ideas, decisions and remarks of the user are told, and how many pieces of an answer are weighed.
	ideas: number,
	decisions: number,
	notes: number,
	pieces: number,
	--- The longest line of one note or piece, of an answer, and of a question, in letters.
	note_letters: number,
	answer_letters: number,
	question_letters: number,
}

mind.CRUTCHES = {
	recent = 2,
	ideas = 6,
	decisions = 6,
	notes = 4,
	pieces = 12,
	note_letters = 240,
	answer_letters = 400,
	question_letters = 200,
} :: Crutches

--- From this window on, in tokens, a model gets the whole conversation.
mind.LARGE_WINDOW = 32_000
--- A model of at most so many billion parameters, by its name, is small whatever its window is.
mind.SMALL_BILLIONS = 9
--- Who serves models of the user's own machine: one whose window nobody knows may well be served with a small one.
local LOCAL = { "local", "ollama", "llamacpp", "lmstudio" }

--- Returns how many billion parameters a model has by its name (`qwen2.5-coder-1.5b`, `mixtral-8x7b`), or nil.
function mind.billions(name: string): number?
	local found = text.search(string.lower(name), "(?:^|[^a-z0-9.])(?:([0-9]+)x)?([0-9]+(?:\\.[0-9]+)?)b(?:[^a-z0-9]|$)")
	if found == nil then
		return nil
	end
	return (tonumber(found.groups[1]) or 1) * (tonumber(found.groups[2]) or 0)
end

--- Returns the size of a model by its full name (`provider/model`) and its window, where that is known. Pure.
function mind.judge(name: string, window: number?): Size
	local billions = mind.billions(name)
	if billions ~= nil and billions <= mind.SMALL_BILLIONS then
		return "small"
	elseif window ~= nil then
		return if window < mind.LARGE_WINDOW then "small" else "large"
	end
	local provider = string.match(name, "^([^/]+)/") or ""
	local served_here = list.some(LOCAL, function(one): boolean
		return one == provider
	end)
	return if served_here and billions == nil then "small" else "large"
end

--- Returns the size of a model; without a name, of the run's.
function mind.of(model: string?): Size
	local name = llm.model(model)
	return mind.judge(name, llm.window(name))
end

--- Returns how many tokens of a model's window a part of a prompt may take: `share` of it (0 to 1), `otherwise` where the window
--- is not known.
function mind.room(share: number, otherwise: number, model: string?): number
	local window = llm.window(llm.model(model))
	return if window == nil then otherwise else math.floor(window * share)
end

return mind
