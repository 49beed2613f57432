--!strict
--- Has a model read a response, in one call: which tags it gets (how its author reasons, in the vocabulary of `tags.yaml`), and
--- what it changes in the ledger.

local app = require("./app")
local ledger = require("./ledger")
local list = require("../common/list")
local session = require("./session")
local shape = require("../common/shape")
local stack_trace = require("./stack_trace")
local text = require("@nietz/text")
local vocabulary = require("./vocabulary")

local reading = {}

--- What a model makes of a response.
export type Reading = { tags: { string } } & ledger.Changes

local MAX_TAGS, MAX_CHANGES, MAX_PAIRS = 3, 6, 2
--- How much of the problem a later reading has, in bytes.
local REMINDER = 80

local ID, QUOTE = shape.text(1), shape.text(1)

local TAGS = shape.list({ enum = vocabulary.names() }, nil, MAX_TAGS)
local WHAT = { enum = { "seen", "believed", "ruled_out" } }

--- While nothing is known, there is nothing to refer to.
local FIRST = shape.object({ "tags", "entries" }, {
	tags = TAGS,
	entries = shape.list(shape.object({ "what", "quote" }, { what = WHAT, quote = QUOTE }), nil, MAX_CHANGES),
})
FIRST.required = { "tags" }
local LATER = shape.object({ "tags", "entries", "moved", "apart" }, {
	tags = TAGS,
	entries = shape.list(
		shape.object({ "what", "quote", "rests_on" }, {
			what = WHAT,
			quote = QUOTE,
			rests_on = shape.list(ID, nil, MAX_PAIRS),
		}),
		nil,
		MAX_CHANGES
	),
	moved = shape.list(
		shape.object({ "id", "to", "quote" }, {
			id = ID,
			to = { enum = { "seen", "contradicted", "ruled_out", "narrowed", "believed" } },
			quote = QUOTE,
		}),
		nil,
		MAX_CHANGES
	),
	apart = shape.list(shape.object({ "one", "other" }, { one = ID, other = ID }), nil, MAX_PAIRS),
})
-- The tags alone are a reading, too: a small model may not manage more, and the session goes on without a ledger.
LATER.required = { "tags" }
LATER.properties.entries.items.required = { "what", "quote" }

--- Returns what a turn's response is found to be, or nil where the model gives nothing valid.
function reading.ask(self: app.App, turn: session.Turn): Reading?
	local problem, known = stack_trace.shorten(self.doc.problemDescription), ledger.for_prompt(self)
	return app.ask_model({
		prompt = "read",
		model = self.params.tags_model,
		vars = {
			tags = vocabulary.TAGS,
			-- Once there is a ledger, what matters of the problem stands in it.
			problem = if known then text.truncate(problem, REMINDER) else problem,
			known = known or false,
			question = turn.question,
			response = stack_trace.shorten(turn.response),
		},
		schema = if known then LATER else FIRST,
		label = self.t("doing.tagging"),
	})
end

--- Whether a tag that leads to a harder voice is among these.
function reading.escalates(tags: { string }): boolean
	return list.some(tags, function(name): boolean
		local tag = vocabulary.find(name)
		return tag ~= nil and tag.escalates == true
	end)
end

--- Whether one of these tags speaks for the developer.
function reading.is_good(tags: { string }): boolean
	return list.some(tags, function(name): boolean
		local tag = vocabulary.find(name)
		return tag ~= nil and tag.sign > 0
	end)
end

return reading
