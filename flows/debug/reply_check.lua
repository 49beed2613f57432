--!strict
--- Nothing that a model says is shown before it was read: asks for a question in the voice of the session, has the rules and the
--- verifier read what comes, and asks again, with the reason, where it must not be shown.

local app = require("./app")
local evidence = require("./evidence")
local intent = require("./intent")
local leak_rules = require("./leak_rules")
local list = require("../common/list")
local llm = require("@nietz/llm")
local personas = require("@nietz/personas")
local quotes = require("@nietz/quotes")
local quoting = require("./quoting")
local template = require("@nietz/template")
local text = require("@nietz/text")
local ui = require("@nietz/ui")
local verifier = require("./verifier")

local reply_check = {}

--- How often a reply that was refused is asked for again.
local RETRIES = 2
--- The longest reply in tokens, and what one gets that was cut: models that think count that, too.
local ROOMS = { 4000, 16000 }

--- What is asked for: `material` is what the developer showed, `messages` the conversation, `quote` one that the reply may use.
export type Wanted = {
	voice: personas.Persona,
	model: string?,
	material: string?,
	system: string,
	messages: { llm.Message },
	quote: quotes.Quote?,
}
--- What came: a text that may be shown, or none, where every one was refused. `model` said it.
export type Found = { text: string?, model: string }
--- Why a reply must not be shown. `unread` says that nobody could judge it.
type Objection = { reason: string, unread: boolean? }

--- Returns everything that the developer said and showed: none of it can be given away.
function reply_check.known_text(self: app.App): string
	local parts: { string } = {}
	for _, file in self.code_files do
		table.insert(parts, file.text)
	end
	-- What they said last stands last: whether that asks for a concept matters.
	table.insert(parts, self.doc.problemDescription)
	for _, turn in self.doc.transcript do
		table.insert(parts, turn.response)
	end
	return table.concat(parts, "\n")
end

--- Returns what the verifier is told of the session: what was said.
local function said_so_far(self: app.App): string
	local said = { self.doc.problemDescription }
	for _, turn in self.doc.transcript do
		table.insert(said, `Asked: {turn.question}\nAnswered: {turn.response}`)
	end
	return text.truncate(table.concat(said, "\n\n"), math.floor(self.context_tokens))
end

--- Whether a question was asked before, in the same words.
local function is_repeat(self: app.App, reply: string): boolean
	local asked = intent.normalize(reply)
	return list.some(self.doc.transcript, function(turn): boolean
		return intent.normalize(turn.question) == asked
	end)
end

--- Returns why a reply must not be shown, or nil.
local function objection(self: app.App, reply: string, wanted: Wanted): Objection?
	local quote = wanted.quote
	if is_repeat(self, reply) then
		return { reason = "you have asked it before, and they have answered it; ask about something else" }
	end
	local carried = if quote then quoting.quoted_part(reply, quote) else nil
	local known = reply_check.known_text(self)
	if not verifier.is_available(self.params.verifier, self.params.verifier_model) then
		local leak = leak_rules.find_leak(reply, known, carried)
		return if leak then { reason = leak_rules.told(leak) } else nil
	end
	local reading = leak_rules.read(reply, known, carried)
	if reading.hard ~= nil then
		return { reason = leak_rules.told(reading.hard) }
	end
	local hints = leak_rules.hints(reading)
	local verdict = verifier.judge_reply({
		reply = reply,
		context = said_so_far(self),
		material = wanted.material,
		hints = hints,
		label = self.t("doing.verifying"),
		model = self.params.verifier_model,
	})
	if verdict == nil then
		return { reason = "nobody could read it", unread = true }
	end
	return if verdict.leaks then { reason = verdict.reason } else nil
end

--- Asks for a reply, and once more with more room where the limit of tokens cut it. What was shown stands before the voice and the
--- rules: the verifier's prompt begins alike. `label` says what is done meanwhile.
local function ask(self: app.App, wanted: Wanted, messages: { llm.Message }, label: string): llm.Reply
	local reply: llm.Reply? = nil
	local voice = wanted.voice
	local system = `{personas.render(voice, { lang = self.lang })}\n\n{wanted.system}`
	for _, room in ROOMS do
		local one = evidence.ask(self, {
			model = wanted.model or voice.model,
			system = if wanted.material ~= nil then `{wanted.material}\n\n{system}` else system,
			temperature = voice.temperature,
			effort = voice.effort :: any,
			label = label,
			messages = messages,
			max_tokens = room,
		})
		reply = one
		if not one.cut then
			break
		end
	end
	return reply :: llm.Reply
end

--- Returns a reason as a part of a sentence: as it stands after "because".
local function as_clause(reason: string): string
	local bare = string.gsub(text.trim(reason), "[.!%s]+$", "")
	return if string.find(bare, "^%u%l") then string.lower(string.sub(bare, 1, 1)) .. string.sub(bare, 2) else bare
end

--- Returns a reply that may be shown. There is none where each of three was refused, and where the verifier said nothing usable, which
--- the developer is told once in a session: a reply that nobody has read is not shown.
function reply_check.ask(self: app.App, wanted: Wanted): Found
	local messages = wanted.messages
	local model = ""
	for try = 0, RETRIES do
		local name = wanted.voice.name
		local reply = ask(self, wanted, messages, if try == 0 then name else self.t("doing.asking_again", { name = name }))
		model = reply.model
		local said = text.trim(reply.text)
		local against: Objection? = if reply.cut
			then { reason = "it was far too long, and its end is missing" }
			else objection(self, said, wanted)
		if against == nil then
			return { text = said, model = model }
		elseif against.unread then
			if not self.told_unread then
				self.told_unread = true
				ui.say(self.t("unread", { name = wanted.voice.name }))
			end
			break
		elseif try < RETRIES then
			messages = table.clone(messages)
			table.insert(messages, { role = "assistant", content = if said == "" then "…" else said })
			table.insert(messages, {
				role = "user",
				content = template.render("./prompts/again.md", { reason = as_clause(against.reason), language = self.t("language") }),
			})
		end
	end
	return { text = nil, model = model }
end

--- How many tokens a question may be expected to take, for whoever reckons what fits into the window.
reply_check.EXPECTED_TOKENS = 500

return reply_check
