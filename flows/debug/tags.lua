--!strict
--- Asks a model which tags a response gets: how its author reasons, in the vocabulary of `tags.yaml`.

local app = require("./app")
local session = require("./session")
local shape = require("../common/shape")
local stack_trace = require("./stack_trace")
local vocabulary = require("./vocabulary")

local tags = {}

local MAX_TAGS = 3

local SCHEMA = shape.record({ tags = shape.list({ enum = vocabulary.names() }, nil, MAX_TAGS) })

--- Returns the tags of a turn's response, or nil where the model gives nothing valid.
function tags.ask_tags(self: app.App, turn: session.Turn): { string }?
	local value = app.ask_model({
		prompt = "tag",
		model = self.params.tags_model,
		vars = {
			tags = vocabulary.TAGS,
			problem = stack_trace.shorten(self.doc.problemDescription),
			question = turn.question,
			response = stack_trace.shorten(turn.response),
		},
		schema = SCHEMA,
		label = self.t("doing.tagging"),
		max_tokens = 120,
	})
	return if value then value.tags else nil
end

--- Whether one of these tags leads to a harder voice.
function tags.escalates(found: { string }): boolean
	for _, name in found do
		local tag = vocabulary.find(name)
		if tag ~= nil and tag.escalates then
			return true
		end
	end
	return false
end

return tags
