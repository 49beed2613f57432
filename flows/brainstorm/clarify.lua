--!strict
--- Before the first question: shows directions to look in, and has the topic confirmed where it is not clear.

local app = require("./app")
local dialogue = require("./dialogue")
local list = require("../common/list")
local session = require("./session")
local shape = require("../common/shape")
local similarity = require("../common/similarity")
local text = require("@nietz/text")
local ui = require("@nietz/ui")

local clarify = {}

--- Below this, the topic is said in other words and confirmed.
clarify.CLEAR_ENOUGH = 0.6

local VAGUE_WORDS =
	{ "something", "somehow", "stuff", "maybe", "better", "improve", "things", "truc", "chose", "mieux", "ameliorer", "quelque" }
local ACTION_WORDS = {
	"add",
	"build",
	"make",
	"let",
	"allow",
	"replace",
	"remove",
	"support",
	"reduce",
	"survive",
	"decide",
	"choose",
	"fix",
	"ajouter",
	"construire",
	"permettre",
	"remplacer",
	"supprimer",
	"reduire",
	"decider",
	"choisir",
	"corriger",
	"survi",
}

local function mentions(folded: string, markers: { string }): boolean
	return list.some(markers, function(word): boolean
		return string.find(folded, word, 1, true) ~= nil
	end)
end

--- Returns how clear a topic is, from 0 to 1: specificity .3, completeness .3, actionability .2, context .2. Rough, and without
--- a model call.
function clarify.clarity(topic: string): number
	local folded = text.fold(topic)
	local count = #similarity.words(topic)
	local specific = if mentions(folded, VAGUE_WORDS) then 0.2 else math.min(1, count / 4)
	local complete = math.min(1, count / 8)
	local acting = if mentions(folded, ACTION_WORDS) then 1 else 0.3
	local placed = if count >= 6 or string.find(folded, '[%d"`]') ~= nil then 1 else 0.3
	return 0.3 * specific + 0.3 * complete + 0.2 * acting + 0.2 * placed
end

--- Returns what a wish is about, as a subject has it: without `You want`, and the dot.
local function bare_wish(self: app.App, restated: string): string
	local opening = self.t("clarify.opening")
	local rest = if string.sub(restated, 1, #opening) == opening then text.trim(string.sub(restated, #opening + 1)) else restated
	return (string.gsub(rest, "%.$", ""))
end

--- Shows directions, and asks whether the topic is understood where it is not clear.
function clarify.run(self: app.App): app.Signal?
	local state = self.doc.nietz
	local mode = self.options.clarify
	local needed = mode == "always" or (mode == "needed" and clarify.clarity(state.topic) < clarify.CLEAR_ENOUGH)
	-- Those of a small mind are not worth the wait for the first question.
	local directions = self.options.hmw and self.mind == "large"
	if not needed and not directions then
		return nil
	end
	local line = if self.mind == "small" then shape.text(10, 160) else shape.text(10)
	local value = app.ask_model(self, {
		prompt = "frame",
		check = function(value: any): string?
			-- Small models like to repeat the instruction instead of the wish.
			return if self.mind == "large"
				then nil
				elseif similarity.shared_words(value.restated, state.topic) == 0 then "restated does not speak of the subject"
				else nil
		end,
		vars = { topic = state.topic, template = self.options.template or "", count = 3 },
		schema = shape.object({ "restated", "how_might_we" }, { how_might_we = shape.list(line, 1, 3), restated = shape.text(8) }),
	})
	if value == nil then
		return nil
	end
	if directions then
		local lines: { string } = {}
		for _, way in value.how_might_we do
			session.add_note(self.doc, way, "ways")
			table.insert(lines, `- {way}`)
		end
		ui.say(`{self.t("clarify.ways")}\n\n{table.concat(lines, "\n")}`)
	end
	if not needed then
		return nil
	end
	local restated = if self.mind == "small" then app.to_line(value.restated, 240) else text.trim(value.restated)
	local prompt = `{self.t("clarify.restated", { restated = restated })}\n\n{self.t("clarify.ask")}`
	while true do
		local answer, signal = dialogue.ask(self, { id = "clarify", prompt = prompt })
		if answer == nil then
			return if signal and (signal.go == "next" or signal.go == "again") then nil else signal
		end
		local agrees = dialogue.yes_or_no(answer)
		if agrees == false then
			-- That it is not this says nothing yet of what it is.
			prompt = self.t("clarify.what")
		elseif answer == "" or agrees then
			state.topic = if prompt == self.t("clarify.what") then state.topic else bare_wish(self, restated)
			return nil
		else
			state.topic = answer
			session.add_note(self.doc, answer, "user")
			return nil
		end
	end
end

return clarify
