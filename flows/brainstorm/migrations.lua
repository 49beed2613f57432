--!strict
--- Brings session files of version 1.0 up to 1.2, the schema's nesting being the one that counts: `mode` and the
--- tracking fields go into `session`, `format_version` stays at the top. There was no 1.1.

local json = require("@nietz/json")
local nietz = require("@nietz")

local migrations = {}

--- Returns a 1.0 document as 1.2.
function migrations.from_1_0(doc: any): any
	local session = doc.session
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
	local inner = if type(doc.session) == "table" then doc.session.format_version else nil
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

--- What the manifest's `version.migrations` wants.
migrations.all = {
	["1.0"] = migrations.from_1_0,
	[""] = migrations.from_unversioned,
}

return migrations
