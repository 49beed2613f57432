--!strict
--- The session files of the workspace, read in parts and one at a time, so that memory does not grow with their number: what the
--- profile, the list and whoever looks for one session go through. What cannot be read is named and left out.

local clock = require("@nietz/clock")
local documents = require("@nietz/documents")
local errors = require("../common/memory/errors")
local json = require("@nietz/json")
local list = require("../common/list")
local period = require("./period")
local rules = require("./rules")
local vocabulary = require("./vocabulary")

local session_files = {}

--- The parts of a session that are read. A part that is not there is nil.
export type Parts = {
	id: string,
	timestamp: string,
	outcome: string,
	intensity: string,
	scores: { [string]: number }?,
	problem: string,
	--- The tags of the session, and what each of them counts for.
	tags: { string },
	tagged: { number },
	dimensions: { string },
	turns: { number },
	count: number,
	--- Where it stands, by our own key: `open`, `ended`, `unscored`.
	state: string?,
	voices: { string }?,
	reflection: string?,
}

--- Which sessions are wanted; nil wants all.
export type Filter = {
	since: string?,
	["until"]: string?,
	outcome: string?,
	intensity: string?,
	tag: string?,
	voice: string?,
	kind: string?,
	--- Whether those of the user's other folders are wanted, too.
	all: boolean?,
}

export type Left = {
	--- Files that could not be read, at most `MAX_NAMED` of them by name.
	broken: { { path: string, message: string } },
	brokenCount: number,
	--- Files of a newer version, which were read as far as they are known.
	newer: { string },
	newerCount: number,
	--- Folders that are gone, or cannot be looked into; their sessions are left out.
	gone: { string },
}

--- How many files are named.
local MAX_NAMED = 20

local sessions = documents.collection("sessions")

local FIELDS = {
	id = "/id",
	timestamp = "/timestamp",
	outcome = "/outcome",
	intensity = "/intensity",
	scores = "/skillScores",
	problem = "/problemDescription",
	tags = "/behaviorTags/*/tag",
	turns = "/transcript/*/turnNumber",
	count = "/questionsToRootCause",
	tagged = "/behaviorTags/*/turnNumber",
	dimensions = "/behaviorTags/*/dimension",
	state = "/nietz/state",
	voices = "/nietz/voices",
	reflection = "/nietz/reflection/answer",
}

--- Returns the first rule that a session breaks, checked on the parts that were read; nil where it breaks none. (`rules.lua` needs
--- whole documents.)
local function broken_rule(found: Parts): string?
	if not rules.is_version_4(tostring(found.id)) then
		return "/id: must be a UUID of version 4"
	end
	local seen: { [number]: boolean } = {}
	for _, number in found.turns or {} :: { number } do
		if seen[number] then
			return `/transcript: repeats the turnNumber {number}`
		end
		seen[number] = true
	end
	if found.count ~= #(found.turns or {}) then
		return "/questionsToRootCause: must be the number of turns in the transcript"
	end
	for _, number in found.tagged or {} :: { number } do
		if not seen[number] then
			return `/behaviorTags: there is no turn {number}`
		end
	end
	for _, name in found.dimensions or {} :: { string } do
		if not vocabulary.is_dimension(name) then
			return `/behaviorTags: "{name}" is not a dimension of tags.yaml`
		end
	end
	return nil
end

--- Returns how a session ended, or `open`: it is on disk as abandoned until it ends.
function session_files.outcome(found: Parts): string
	return if found.state == "open" then "open" else found.outcome
end

--- Returns who asked when a session began: a voice of the user's own, or the one of the specification.
function session_files.voice(found: Parts): string
	return if found.voices ~= nil and #found.voices > 0 then found.voices[1] else found.intensity
end

--- Returns which kind of error a session was about, by the names and words in its problem; `Other` where nothing tells.
function session_files.kind(found: Parts): string
	for name in string.gmatch(found.problem or "", "%u[%w_]+") do
		local kind = errors.kind(name, "")
		if kind ~= "Other" then
			return kind
		end
	end
	-- Of plain words, those that speak of an assertion ("got", "want") say nothing.
	local kind = errors.kind(nil, found.problem or "")
	return if kind == "AssertionError" then "Other" else kind
end

local function is_wanted(filter: Filter, found: Parts): boolean
	local asked = list.map(found.voices or {} :: { string }, function(slug): string
		return slug
	end)
	table.insert(asked, found.intensity)
	return (filter.outcome == nil or session_files.outcome(found) == filter.outcome)
		and (filter.intensity == nil or found.intensity == filter.intensity)
		and (filter.tag == nil or table.find(found.tags or {}, filter.tag) ~= nil)
		and (filter.voice == nil or table.find(asked, filter.voice) ~= nil)
		and (filter.kind == nil or session_files.kind(found) == filter.kind)
end

--- Returns where a file is, as it is named: below the workspace, or in which other folder.
local function place(entry: documents.Seen): string
	return if entry.folder then `{entry.folder}/{entry.path}` else entry.path
end

--- Calls `visit` with each session that the filter wants, and the seconds at which it began, in the order of the files' names; one that
--- several folders have a copy of once. Returns what was left out.
function session_files.each(filter: Filter, visit: (found: Parts, at: number) -> ()): Left
	local bounds = period.of(filter)
	local left: Left = { broken = json.array({}), brokenCount = 0, newer = json.array({}), newerCount = 0, gone = json.array({}) }
	local visited: { [string]: boolean } = {}
	sessions:each(function(entry: documents.Seen)
		if entry.path == "" then
			table.insert(left.gone, entry.folder :: string)
			return
		end
		local value = entry.value
		local at = if value then clock.parse(tostring(value.timestamp)) else nil
		local details = if entry.error then entry.error.details else nil
		local message = if details and #details > 0
			then details[1]
			elseif entry.error then entry.error.message
			elseif entry.newer == nil then broken_rule(value)
			else nil
		if message ~= nil or at == nil then
			left.brokenCount += 1
			if left.brokenCount <= MAX_NAMED then
				table.insert(left.broken, { path = place(entry), message = message or "it has no timestamp" })
			end
			return
		end
		if visited[value.id] or not (period.holds(bounds, at) and is_wanted(filter, value)) then
			return
		end
		visited[value.id] = true
		if entry.newer ~= nil then
			left.newerCount += 1
			if left.newerCount <= MAX_NAMED then
				table.insert(left.newer, place(entry))
			end
		end
		visit(value, at)
	end, { fields = FIELDS, everywhere = filter.all })
	return left
end

return session_files
