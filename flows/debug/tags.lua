--!strict
--- What a response shows of how its author reasons, by the vocabulary of `tags.yaml`.

local app = require("./app")
local session = require("./session")
local shape = require("../common/shape")
local trace = require("./trace")
local vocabulary = require("./vocabulary")

local tags = {}

local MOST = 3

local SCHEMA = shape.record({ tags = shape.list({ enum = vocabulary.names() }, nil, MOST) })

--- Returns the tags of a turn's response, or nil where the model gives nothing valid.
function tags.read(self: app.App, turn: session.Turn): { string }?
	local value = app.think({
		prompt = "tag",
		vars = {
			tags = vocabulary.TAGS,
			problem = trace.reduce(self.doc.problemDescription),
			question = turn.question,
			response = trace.reduce(turn.response),
		},
		schema = SCHEMA,
		label = self.t("doing.tagging"),
		max_tokens = 120,
	})
	return if value then value.tags else nil
end

--- Whether one of these tags makes the intensity rise.
function tags.escalate(found: { string }): boolean
	for _, name in found do
		local tag = vocabulary.find(name)
		if tag ~= nil and tag.escalates then
			return true
		end
	end
	return false
end

return tags
