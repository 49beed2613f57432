--!strict
--- Which model does what in a session, where the user names one for it: a model of its own for each part, by `provider/model` or an
--- alias. What nobody named is the voice's own model, or the run's.

local app = require("./app")
local nietz = require("@nietz")

local models = {}

--- The params that name them. `verifier_model` stands with the verifier's own.
models.PARAMS = {
	question_model = { type = "string", help = "The model that asks [default: the voice's own, or the run's]" },
	first_model = { type = "string", help = "The model that asks where code is seen for the first time [default: the one that asks]" },
	tags_model = { type = "string", help = "The model that reads how you reason in an answer [default: the run's]" },
	score_model = { type = "string", help = "The model that scores the session [default: the run's]" },
} :: { [string]: nietz.Param }

--- Returns the model for the next question, or nil. The first look at a file may be a stronger one's.
function models.for_question(self: app.App): string?
	local sees_more = #self.code_files > self.seen_files
	self.seen_files = #self.code_files
	return if sees_more then self.params.first_model or self.params.question_model else self.params.question_model
end

return models
