--!strict
--- Brings session files up to what is written today: those of version 1.0 to 1.2, the schema's nesting being the one that counts
--- (`mode` and the tracking fields go into `session`, `format_version` stays at the top; there was no 1.1); and what we kept among
--- the fields of the specification to our own key.

local json = require("@nietz/json")
local ledger = require("../common/ledger")
local nietz = require("@nietz")

local migrations = {}

--- Returns a 1.0 document as 1.2.
function migrations.from_1_0(doc: any): any
	local session = doc.session
	if type(session) ~= "table" then
		-- The schema says what is missing, and where.
		doc.format_version = "1.2"
		return doc
	end
	session.mode = "standard"
	local history = json.array({} :: { any })
	for index, slug in session.techniques_used or {} do
		table.insert(history, {
			iteration = index,
			technique_slug = slug,
			-- 1.0 did not record it, and guessing it from today's list would be invention.
			category = "unknown",
			suggested_reason = "migrated from v1.0",
			applied = true,
			source = "manual",
			weak_axes = json.array {},
		})
	end
	session.techniques_history = history
	session.party_active = false
	session.party_history = json.array {}
	session.panel_active = false
	session.panel_history = json.array {}
	session.format_version = nil
	doc.format_version = "1.2"
	return doc
end

--- Returns a document that has no version at the top: some 1.0 files carry theirs inside `session`.
function migrations.from_unversioned(doc: any): any
	local session = if type(doc) == "table" then doc.session else nil
	local inner = if type(session) == "table" then session.format_version else nil
	if inner ~= "1.0" then
		nietz.fail(
			if inner == nil
				then "the session file has no format_version"
				else `the session file has its format_version {inner} inside session`,
			'put format_version: "1.2" on the first line if the file follows version 1.2'
		)
	end
	return migrations.from_1_0(doc)
end

--- What we kept among the fields of the specification, before it had a key of its own.
migrations.FORMERLY = { "/session/flow_state" }

--- Returns a 1.2 document in which all that is ours stands under our key.
function migrations.own_key(doc: any): any
	local session = doc.session
	local own = session.flow_state or {}
	session.flow_state = nil
	own.version = 1
	local entries, iterations = json.array({} :: { any }), json.array({} :: { any })
	local last_idea = 0
	for _, idea in session.ideas or {} do
		table.insert(entries, {
			kind = "idea",
			text = idea.content,
			by = "user",
			turn = idea.iteration or 0,
			score = idea.score,
			idea = idea.id,
		})
		last_idea = math.max(last_idea, idea.id)
		idea.iteration = nil
	end
	for _, decision in own.decisions or {} do
		table.insert(entries, { kind = "decision", text = decision.text, by = "user", turn = decision.iteration })
	end
	own.decisions = nil
	table.sort(entries, function(one: ledger.Entry, other: ledger.Entry): boolean
		return one.turn < other.turn
	end)
	for id, entry in entries do
		entry.id = id
	end
	for _, entry in session.history or {} do
		if entry.axes ~= nil or entry.persona ~= nil then
			table.insert(iterations, {
				iteration = entry.iteration,
				after = entry.iteration - 1,
				axes = entry.axes or {},
				persona = entry.persona or session.persona or "",
			})
			entry.axes, entry.persona = nil, nil
		end
	end
	own.ledger = { last = #entries, entries = entries }
	own.iterations = iterations
	own.last_idea = last_idea
	doc.nietz = own
	return doc
end

--- What the manifest's `version.migrations` wants.
migrations.all = {
	["1.0"] = migrations.from_1_0,
	[""] = migrations.from_unversioned,
	["1.2+"] = migrations.own_key,
}

return migrations
