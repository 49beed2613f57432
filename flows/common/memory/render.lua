--!strict
--- What is shown of the memory: to a model as dated observations, to a person as questions.

local llm = require("@nietz/llm")
local patterns = require("./patterns")
local template = require("@nietz/template")
local text = require("@nietz/text")

local render = {}

--- A failure of an earlier session, and what came of it.
export type Past = {
	session_id: string,
	--- The day on which it was seen; empty where the session does not say.
	date: string,
	file: string,
	--- Empty where a person told it and no test failed.
	test: string,
	error_type: string,
	error_message: string,
	--- Empty where it was never found out.
	root_cause: string,
	category: string,
	fix_strategy: string,
	--- What was changed, if anything was.
	fix: string?,
	--- Whether that helped, by what the tests showed; nil when it was not tried.
	worked: boolean?,
	--- What the tests showed after it.
	ended: string?,
	--- What else was tried on it in that session and did not help, with what the tests showed then.
	not_helped: { string }?,
	--- What the signs of likeness add up to, and whether the rules are sure of it.
	similarity: number,
	sure: boolean?,
	--- Why a model says that its cause is like the one of now.
	reason: string?,
}

--- What a model is to judge: the text, and how many past failures it tells.
export type Judged = { text: string, count: number }

--- The kinds of causes, as people say them.
local IN_ENGLISH = {
	null_undefined_access = "access to a value that is not there",
	type_mismatch = "a mismatch of types",
	missing_validation = "input that was not validated",
	logic_error = "an error in the logic",
	off_by_one = "an off-by-one error",
	race_condition = "a race condition",
	resource_leak = "a resource leak",
	missing_error_handling = "an error that was not handled",
	api_misuse = "misuse of an API",
	configuration_error = "a configuration error",
	dependency_issue = "a dependency issue",
} :: { [string]: string }
local IN_FRENCH = {
	null_undefined_access = "un accès à une valeur absente",
	type_mismatch = "un mélange de types",
	missing_validation = "une donnée qui n'était pas vérifiée",
	logic_error = "une erreur de logique",
	off_by_one = "un décalage d'une unité",
	race_condition = "une situation de concurrence",
	resource_leak = "une ressource qui n'était pas rendue",
	missing_error_handling = "une erreur qui n'était pas traitée",
	api_misuse = "un mauvais usage d'une API",
	configuration_error = "une erreur de configuration",
	dependency_issue = "un problème de dépendance",
} :: { [string]: string }

--- The most that a model is told, in tokens.
local MAX_TOKENS = 2000

local function percent(rate: number): string
	return `{math.round(rate * 100)} %`
end

--- Returns the kind of an error with its article: `an AssertionError`.
local function with_article(kind: string): string
	local name = if kind == "Other" then "failure" else kind
	return (if string.find(name, "^[AEIOU]") then "an " else "a ") .. name
end

--- Returns a text as one line, so that it cannot be taken for lines of the list around it.
local function one_line(value: string): string
	return text.trim((string.gsub(value, "%s+", " ")))
end

--- Returns what a prompt has of a past failure: each part on a line of its own, without what is not known.
local function observation(past: Past): { [string]: any }
	local not_helped = {}
	local others: { string } = past.not_helped or {}
	for _, tried in others do
		table.insert(not_helped, one_line(tried))
	end
	local outcome = if past.worked == nil then "untried" elseif past.worked then "helped" else "failed"
	return {
		date = past.date,
		file = past.file,
		kind = if past.error_type == "Other" then "a failure" else past.error_type,
		with_article = with_article(past.error_type),
		is_named = past.error_type ~= "Other",
		test = past.test,
		message = one_line(past.error_message),
		root_cause = one_line(past.root_cause),
		category = (string.gsub(past.category, "_", " ")),
		strategy = one_line(past.fix_strategy),
		outcome = outcome,
		ended = one_line(past.ended or ""),
		not_helped = not_helped,
		reason = one_line(past.reason or ""),
	}
end

--- Renders past failures and patterns, without the least alike where they would be too many tokens.
local function rendered(found: { Past }, known: { patterns.Pattern }, is_judged: boolean): Judged
	local kept, kept_patterns = table.clone(found), table.clone(known)
	while #kept + #kept_patterns > 0 do
		local observations, shown = {}, {}
		for index, past in kept do
			local one = observation(past)
			one.name = if is_judged then `P{index}` else ""
			table.insert(observations, one)
		end
		for _, pattern in kept_patterns do
			table.insert(shown, {
				pattern = pattern.pattern,
				category = (string.gsub(pattern.category, "_", " ")),
				uses = pattern.uses,
				rate = percent(pattern.rate),
				last = pattern.last,
				template = one_line(pattern.template),
			})
		end
		local said = text.trim(template.render("./prompts/recall.md", { past = observations, patterns = shown }))
		if llm.count(said) <= MAX_TOKENS then
			return { text = said, count = #kept }
		end
		-- The last one is the least alike, or ranks lowest.
		table.remove(if #kept_patterns > #kept then kept_patterns else kept)
	end
	return { text = "", count = 0 }
end

--- Renders past failures and patterns for a model.
function render.for_model(found: { Past }, known: { patterns.Pattern }): string
	return rendered(found, known, false).text
end

--- Renders past failures for a model that is to judge them, each with a name, and patterns.
function render.for_judge(found: { Past }, known: { patterns.Pattern }): Judged
	return rendered(found, known, true)
end

--- Returns a question for each past failure, in English, or French (`fr`).
function render.for_person(found: { Past }, language: string?): { string }
	local path = if language == "fr" then "./prompts/question.fr.md" else "./prompts/question.en.md"
	local questions = {}
	for _, past in found do
		local shown = observation(past)
		if past.category == "other" then
			shown.category = ""
		else
			shown.category = (if language == "fr" then IN_FRENCH else IN_ENGLISH)[past.category] or shown.category
		end
		table.insert(questions, text.trim(template.render(path, { past = shown })))
	end
	return questions
end

return render
