--!strict
--- The growth profile, computed from all session files when it is asked for: in one pass, so that memory does not grow with
--- their number.

local json = require("@nietz/json")
local session_files = require("./session_files")
local vocabulary = require("./vocabulary")

local profile = {}

export type Recent = { at: number, id: string, scores: { [string]: number }, against: { string } }
export type BlindSpot = { tag: string, dimension: string, sessions: number, recent: number }
--- The means that a trend compares; one that there is nothing for is nil.
export type Means = { before: number?, now: number? }
export type Profile = {
	--- Sessions that have ended: one whose run is open is no session yet.
	totalSessions: number,
	solvedCount: number,
	abandonedCount: number,
	openCount: number,
	--- Sessions that ended without an answer, and have no scores to speak of. They are among the total.
	unscoredCount: number,
	--- Nil where no session has scores.
	averageScores: { [string]: number }?,
	recentTrend: { [string]: string },
	recentMeans: { [string]: Means },
	blindSpots: { BlindSpot },
	--- The scores of the last sessions, oldest first.
	recentScores: { [string]: { number } },
	broken: { { path: string, message: string } },
	brokenCount: number,
	newer: { string },
	newerCount: number,
	--- Folders that are gone, whose sessions are left out.
	gone: { string },
}

--- A trend compares so many sessions with as many before them, and calls more than this a change.
local BLOCK, CHANGE = 5, 1
--- How many of the last sessions are kept.
local MAX_RECENT = 20
--- A negative tag in so many of the last ten sessions is a blind spot.
local LAST, RECURRING = 10, 3

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

--- Returns the mean of the last five sessions in a dimension, and that of the five before, not rounded.
function profile.means(recent: { Recent }, dimension: string): Means
	local count = #recent
	return {
		now = mean(recent, count - BLOCK + 1, count, dimension),
		before = mean(recent, count - 2 * BLOCK + 1, count - BLOCK, dimension),
	}
end

--- Returns how a dimension goes, by these means.
function profile.trend(means: Means): string
	if means.now == nil or means.before == nil then
		return "stable"
	end
	local delta = means.now - means.before
	return if delta > CHANGE then "improving" elseif delta < -CHANGE then "declining" else "stable"
end

type Sums = { scores: { [string]: { sum: number, count: number } }, spots: { [string]: number } }

--- Adds a session to the sums, and returns the part of it that is kept while it is one of the last.
local function add_session(sums: Sums, found: session_files.Parts, at: number): Recent
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
	for _, name in found.tags or {} :: { string } do
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
function profile.compute(filter: session_files.Filter): Profile
	local sums: Sums = { scores = {}, spots = {} }
	local recent: { Recent } = {}
	local total, solved, abandoned, open, unscored = 0, 0, 0, 0, 0
	local left = session_files.each(filter, function(found, at)
		if found.state == "open" then
			open += 1
			return
		end
		total += 1
		solved += if found.outcome == "solved" then 1 else 0
		abandoned += if found.outcome == "abandoned" then 1 else 0
		if found.state == "unscored" then
			unscored += 1
		else
			keep_recent(recent, add_session(sums, found, at))
		end
	end)
	local averages: { [string]: number } = {}
	local trends: { [string]: string }, means: { [string]: Means } = {}, {}
	local scores: { [string]: { number } } = {}
	for _, dimension in vocabulary.DIMENSIONS do
		local name = dimension.name
		local sum = sums.scores[name]
		if sum ~= nil then
			averages[name] = sum.sum / sum.count
		end
		means[name] = profile.means(recent, name)
		trends[name] = profile.trend(means[name])
		scores[name] = json.array({})
		for _, one in recent do
			if one.scores[name] ~= nil then
				table.insert(scores[name], one.scores[name])
			end
		end
	end
	return {
		totalSessions = total,
		solvedCount = solved,
		abandonedCount = abandoned,
		openCount = open,
		unscoredCount = unscored,
		averageScores = if next(averages) ~= nil then averages else nil,
		recentTrend = trends,
		recentMeans = means,
		blindSpots = blind_spots(sums, recent),
		recentScores = scores,
		broken = left.broken,
		brokenCount = left.brokenCount,
		newer = left.newer,
		newerCount = left.newerCount,
		gone = left.gone,
	}
end

return profile
