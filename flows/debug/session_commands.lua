--!strict
--- What a line does that is no answer, or that may be meant as none: taking an answer back, and the two
--- questions that come before a session counts as solved.

local app = require("./app")
local intent = require("./intent")
local ledger = require("./ledger")
local list = require("../common/list")
local markdown = require("../common/markdown")
local session = require("./session")
local text = require("@nietz/text")
local ui = require("@nietz/ui")
local yaml = require("@nietz/yaml")

local session_commands = {}

--- How many answers can be taken back.
local MOST_BEFORE = 20
--- What of the state is no part of what an answer changes: `commands_run` numbers branches, which have names of their own, and what was
--- asked once stays asked.
local KEPT = { before = true, params = true, commands_run = true, asked_once = true } :: { [string]: boolean }

local CLAIMS = yaml.load("./claims.yaml")

--- Shows the question of a turn, of the voice that asks now, or that `voice` names.
function session_commands.show_question(self: app.App, turn: session.Turn, voice: string?)
	ui.say(`**[{self.t("turn")} {turn.turnNumber}]** {turn.question}`, { from = voice or app.voice(self).name })
end

--- Returns a copy of a value with all that is in it. Texts are shared, so that it takes little.
local function copy(value: any): any
	if type(value) ~= "table" then
		return value
	end
	local copied = table.clone(value)
	for name, part in value do
		copied[name] = copy(part)
	end
	return copied
end

--- Keeps what is so before an answer is taken, for `take_back`.
function session_commands.remember(self: app.App)
	local state: { [string]: any } = {}
	for name, value in self :: any do
		if not KEPT[name] then
			state[name] = if name == "doc" then copy(value) elseif type(value) == "table" then table.clone(value) else value
		end
	end
	table.insert(self.before, state)
	if #self.before > MOST_BEFORE then
		table.remove(self.before, 1)
	end
end

--- Takes the last answer back, with its tags and all else that came of it. Returns its turn, whose question is open again; nil where
--- there is no answer to take back.
function session_commands.take_back(self: app.App): session.Turn?
	-- The last one kept is of the line before: its question has been asked, or the session would be over.
	local state = table.remove(self.before)
	if state == nil then
		ui.say(self.t("undo.none"))
		return nil
	end
	for name in self :: any do
		if not KEPT[name] then
			(self :: any)[name] = state[name]
		end
	end
	app.save(self)
	local turn = self.doc.transcript[#self.doc.transcript] :: session.Turn
	ui.say(self.t("undo.done", { number = turn.turnNumber }))
	session_commands.show_question(self, turn)
	return turn
end

--- Whether a sentence says that the bug is found or mended. What makes something else of it counts in that clause: behind it stands the
--- explanation ("found it: the key has no version").
function session_commands.says_solved(response: string): boolean
	local plain = intent.normalize(response)
	if text.search(plain, CLAIMS.question) ~= nil then
		return false
	end
	return list.some(CLAIMS.says_solved, function(pattern: string): boolean
		local found = text.search(plain, pattern)
		if found == nil then
			return false
		end
		local ends = string.find(plain, "[:;,.]", found.last) or #plain
		local clause = string.sub(plain, 1, ends)
		return not list.some(CLAIMS.unless, function(doubt: string): boolean
			return text.search(clause, doubt) ~= nil
		end)
	end)
end

--- Asks once whether such a sentence counts as solved. Where nobody is there to be asked, it is an answer.
function session_commands.is_meant_as_solved(self: app.App, response: string): boolean
	if self.asked_once.claim or not session_commands.says_solved(response) or not ui.attended() then
		return false
	end
	self.asked_once.claim = true
	return ui.confirm({ id = "count-as-solved", prompt = self.t("solved.claim"), default = false, yes = self.t("yes"), no = self.t("no") })
end

--- Asks once, before the scores, whether the cause explains all that was seen. Where nothing was said, or nobody is there to be
--- asked, it does.
function session_commands.explains_all(self: app.App): boolean
	if self.asked_once.explains or self.answered == 0 or not ui.attended() then
		return true
	end
	self.asked_once.explains = true
	local lines = {}
	local known = ledger.of(self)
	if known ~= nil then
		for _, entry in known.seen do
			table.insert(lines, `- {markdown.literal(entry.quote)}`)
		end
	end
	local seen = if #lines > 0 then `{self.t("solved.seen")}\n\n{table.concat(lines, "\n")}\n\n` else ""
	return ui.confirm({
		id = "explains-all",
		prompt = seen .. self.t("solved.explains"),
		default = true,
		yes = self.t("yes"),
		no = self.t("no"),
	})
end

return session_commands
