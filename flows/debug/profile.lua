--!strict
--- The growth profile, computed from all session files when it is asked for: in one pass, so that memory does not grow with
--- their number.

local clock = require("@nietz/clock")
local documents = require("@nietz/documents")
local json = require("@nietz/json")
local nietz = require("@nietz")
local rules = require("./rules")
local vocabulary = require("./vocabulary")

local profile = {}

export type Filter = { since: string?, ["until"]: string?, outcome: string?, intensity: string? }
export type Recent = { at: number, id: string, scores: { [string]: number }, against: { string } }
export type BlindSpot = { tag: string, dimension: string, sessions: number, recent: number }
export type Profile = {
	totalSessions: number,
	solvedCount: number,
	abandonedCount: number,
	--- Nil where there is no session.
	averageScores: { [string]: number }?,
	recentTrend: { [string]: string },
	blindSpots: { BlindSpot },
	--- The scores of the last sessions, oldest first.
	recentScores: { [string]: { number } },
	--- Files that could not be read, at most `MAX_NAMED` of them by name.
	broken: { { path: string, message: string } },
	brokenCount: number,
	--- Files of a newer version, which were read as far as they are known.
	newer: { string },
	newerCount: number,
}

--- A trend compares so many sessions with as many before them, and calls more than this a change.
local BLOCK, CHANGE = 5, 1
--- How many of the last sessions are kept.
local MAX_RECENT = 20
--- A negative tag in so many of the last ten sessions is a blind spot.
local LAST, RECURRING = 10, 3
--- How many files are named.
local MAX_NAMED = 20

local sessions = documents.collection("sessions")

local FIELDS = {
	id = "/id",
	timestamp = "/timestamp",
	outcome = "/outcome",
	intensity = "/intensity",
	scores = "/skillScores",
	tags = "/behaviorTags/*/tag",
	turns = "/transcript/*/turnNumber",
	count = "/questionsToRootCause",
	tagged = "/behaviorTags/*/turnNumber",
	dimensions = "/behaviorTags/*/dimension",
}

--- Returns the first rule that a session breaks, checked on the fields that were read; nil where it breaks none. (`rules.lua`
--- needs whole documents.)
local function broken_rule(found: documents.Document): string?
	if not rules.is_version_4(tostring(found.id)) then
		return "/id: must be a UUID of version 4"
	end
	local seen: { [number]: boolean } = {}
	for _, number in found.turns or {} do
		if seen[number] then
			return `/transcript: repeats the turnNumber {number}`
		end
		seen[number] = true
	end
	if found.count ~= #(found.turns or {}) then
		return "/questionsToRootCause: must be the number of turns in the transcript"
	end
	for _, number in found.tagged or {} do
		if not seen[number] then
			return `/behaviorTags: there is no turn {number}`
		end
	end
	for _, name in found.dimensions or {} do
		if not vocabulary.is_dimension(name) then
			return `/behaviorTags: "{name}" is not a dimension of tags.yaml`
		end
	end
	return nil
end

--- Returns the seconds of a day or a time that a filter names; `last` means the end of a day.
local function parse_moment(flag: string, value: string?, last: boolean): number?
	if value == nil then
		return nil
	end
	local day = string.match(value, "^%d%d%d%d%-%d%d%-%d%d$") ~= nil
	local seconds = clock.parse(if day then value .. "T00:00:00Z" else value)
	if seconds == nil then
		return nietz.usage(`--{flag} {value} is neither a day nor a time`, "such as 2026-03-01 or 2026-03-01T10:00:00Z")
	end
	return if day and last then seconds + 86400 - 0.001 else seconds
end

--- Keeps the newest sessions, newest last.
local function keep_recent(recent: { Recent }, one: Recent)
	local function before(a: Recent, b: Recent): boolean
		return a.at < b.at or a.at == b.at and a.id < b.id
	end
	if #recent == MAX_RECENT and before(one, recent[1]) then
		return
	end
	local at = #recent
	while at > 0 and before(one, recent[at]) do
		at -= 1
	end
	table.insert(recent, at + 1, one)
	if #recent > MAX_RECENT then
		table.remove(recent, 1)
	end
end

local function mean(recent: { Recent }, first: number, last: number, dimension: string): number?
	local sum, count = 0, 0
	for index = math.max(first, 1), last do
		local score = recent[index].scores[dimension]
		if score ~= nil then
			sum += score
			count += 1
		end
	end
	return if count > 0 then sum / count else nil
end

--- Returns how a dimension goes: the mean of the last five sessions beside that of the five before, not rounded.
function profile.trend(recent: { Recent }, dimension: string): string
	local count = #recent
	local now = mean(recent, count - BLOCK + 1, count, dimension)
	local before = mean(recent, count - 2 * BLOCK + 1, count - BLOCK, dimension)
	if now == nil or before == nil then
		return "stable"
	end
	local delta = now - before
	return if delta > CHANGE then "improving" elseif delta < -CHANGE then "declining" else "stable"
end

type Sums = { scores: { [string]: { sum: number, count: number } }, spots: { [string]: number } }

--- Adds a session to the sums, and returns the part of it that is kept while it is one of the last.
local function add_session(sums: Sums, found: documents.Document, at: number): Recent
	local one: Recent = { at = at, id = tostring(found.id), scores = {}, against = {} }
	for _, dimension in vocabulary.DIMENSIONS do
		local score = if type(found.scores) == "table" then found.scores[dimension.name] else nil
		if type(score) == "number" then
			local sum = sums.scores[dimension.name] or { sum = 0, count = 0 }
			sum.sum += score
			sum.count += 1
			sums.scores[dimension.name] = sum
			one.scores[dimension.name] = score
		end
	end
	for _, name in found.tags or {} do
		local tag = vocabulary.find(name)
		if tag ~= nil and tag.sign < 0 and table.find(one.against, name) == nil then
			table.insert(one.against, name)
			sums.spots[name] = (sums.spots[name] or 0) + 1
		end
	end
	return one
end

local function blind_spots(sums: Sums, recent: { Recent }): { BlindSpot }
	local spots: { BlindSpot } = json.array({})
	for _, tag in vocabulary.TAGS do
		local lately = 0
		for index = math.max(#recent - LAST + 1, 1), #recent do
			lately += if table.find(recent[index].against, tag.tag) ~= nil then 1 else 0
		end
		if lately >= RECURRING then
			table.insert(spots, { tag = tag.tag, dimension = tag.dimension, sessions = sums.spots[tag.tag], recent = lately })
		end
	end
	table.sort(spots, function(a: BlindSpot, b: BlindSpot): boolean
		return a.recent > b.recent or a.recent == b.recent and a.tag < b.tag
	end)
	return spots
end

--- Returns the profile of all sessions that pass the filter.
function profile.compute(filter: Filter): Profile
	local since, before = parse_moment("since", filter.since, false), parse_moment("until", filter["until"], true)
	local sums: Sums = { scores = {}, spots = {} }
	local recent: { Recent } = {}
	local found: Profile = {
		totalSessions = 0,
		solvedCount = 0,
		abandonedCount = 0,
		averageScores = nil,
		recentTrend = {},
		blindSpots = json.array({}),
		recentScores = {},
		broken = json.array({}),
		brokenCount = 0,
		newer = json.array({}),
		newerCount = 0,
	}
	local function visit(entry: documents.Seen)
		local value = entry.value
		local at = if value then clock.parse(tostring(value.timestamp)) else nil
		local details = if entry.error then entry.error.details else nil
		local message = if details and #details > 0
			then details[1]
			elseif entry.error then entry.error.message
			elseif entry.newer == nil then broken_rule(value)
			else nil
		if message ~= nil or at == nil then
			found.brokenCount += 1
			if found.brokenCount <= MAX_NAMED then
				table.insert(found.broken, { path = entry.path, message = message or "it has no timestamp" })
			end
			return
		end
		if
			since ~= nil and at < since
			or before ~= nil and at > before
			or filter.outcome ~= nil and value.outcome ~= filter.outcome
			or filter.intensity ~= nil and value.intensity ~= filter.intensity
		then
			return
		end
		if entry.newer ~= nil then
			found.newerCount += 1
			if found.newerCount <= MAX_NAMED then
				table.insert(found.newer, entry.path)
			end
		end
		found.totalSessions += 1
		found.solvedCount += if value.outcome == "solved" then 1 else 0
		found.abandonedCount += if value.outcome == "abandoned" then 1 else 0
		keep_recent(recent, add_session(sums, value, at))
	end
	sessions:each(visit, { fields = FIELDS })
	local averages: { [string]: number } = {}
	found.averageScores = if found.totalSessions > 0 then averages else nil
	for _, dimension in vocabulary.DIMENSIONS do
		local name = dimension.name
		local sum = sums.scores[name]
		if sum ~= nil then
			averages[name] = sum.sum / sum.count
		end
		found.recentTrend[name] = profile.trend(recent, name)
		found.recentScores[name] = json.array({})
		for _, one in recent do
			if one.scores[name] ~= nil then
				table.insert(found.recentScores[name], one.scores[name])
			end
		end
	end
	found.blindSpots = blind_spots(sums, recent)
	return found
end

return profile
