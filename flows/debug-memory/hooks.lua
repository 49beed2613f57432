--!strict
--- The hooks of the specification's schema: what is done at each of its moments, by the names that it gives.

local documents = require("@nietz/documents")
local escalation = require("./escalation")
local json = require("@nietz/json")
local judged_past = require("./judged_past")
local learnings = require("./learnings")
local recall = require("../common/memory/recall")
local spec = require("../common/memory/spec")
local state = require("./state")

local hooks = {}

local NOT_ENDED: state.Ending = { status = "in_progress", detail = "" }

local ACTIONS = {
	check_similar_past_issues = judged_past.look,
	apply_known_fix_template = function(self)
		local failures = self.results[#self.results].failures
		self.known_patterns = if self.params.memory then recall.offered_patterns(failures, self.candidates) else {}
	end,
	update_fix_effectiveness = learnings.count_patterns,
	extract_learnings = function(self)
		learnings.note_recurring(self)
		learnings.note_issues(self)
		learnings.recommend(self)
	end,
	notify_human = escalation.tell,
	preserve_full_context = escalation.preserve,
} :: { [string]: (self: state.Session, ending: state.Ending) -> () }

for moment, names in spec.hooks do
	for _, name in names do
		assert(ACTIONS[name] ~= nil, `the schema's hook {moment} asks for {name}, which is not known`)
	end
end

--- Does what the schema asks for at a moment: `on_failure`, `on_success` or `on_escalation`.
function hooks.run(self: state.Session, moment: string, ending: state.Ending?)
	for _, name in spec.hooks[moment] or {} :: { string } do
		ACTIONS[name](self, ending or NOT_ENDED)
	end
end

--- Records what a session has learnt at whatever end, and not only where a hook of the schema asks for it: what did not help
--- is to be known, too.
function hooks.learn(self: state.Session)
	ACTIONS.update_fix_effectiveness(self, NOT_ENDED)
	ACTIONS.extract_learnings(self, NOT_ENDED)
end

--- Returns the similar failures of earlier sessions, as an analysis has them in the schema.
function hooks.similar_issues(self: state.Session): { documents.Document }?
	local rows = json.array({})
	for _, past in self.similar_past do
		table.insert(rows, { session_id = past.session_id, file = past.file, resolution = past.fix_strategy })
	end
	return if #rows > 0 then rows else nil
end

return hooks
