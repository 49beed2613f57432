--!strict
--- What earlier sessions know that may help now. Any flow beside this folder can use it: it takes `recall.collections` into
--- its manifest, calls `recall.find_in_run` (a command's output), `recall.find_described` (a person's words) or
--- `recall.find_similar`, and shows what they return with `recall.for_model` or `recall.for_person`. None of these ever fails:
--- what the memory cannot give is said once, and left out. `recall.query`, `recall.patterns` and `recall.templates` are for
--- commands about the memory itself, and do fail.

local entries = require("./entries")
local errors = require("./errors")
local git = require("@nietz/git")
local list = require("../list")
local past = require("./past")
local patterns = require("./patterns")
local rank = require("./rank")
local render = require("./render")
local report = require("./parsers/report")
local results = require("./results")
local store = require("./store")
local text = require("@nietz/text")

local recall = {}

export type Past = render.Past
export type Pattern = patterns.Pattern

--- The most past failures that are offered, and the most that a model is given to judge.
local MAX_PASTS = 3
recall.MAX_CANDIDATES = 8

recall.collections = store.collections
recall.set_language = store.set_language
recall.query = store.query
recall.patterns = patterns.all
recall.templates = patterns.templates

--- Returns what is shown of an execution, with what else was tried on it.
local function shown(hit: Hit, not_helped: { string }): Past
	local entry, failure = hit.entry, hit.failure
	return {
		session_id = entry.session_id,
		date = string.sub(entry.seen, 1, 10),
		file = entry.file,
		test = if failure then failure.test_name else "",
		error_type = if failure then failure.error_type else "Other",
		error_message = if failure then text.truncate(failure.error_message, 200) else "",
		root_cause = entry.root_cause or "",
		category = entry.category,
		fix_strategy = entry.strategy or entry.fix or "",
		fix = entry.fix,
		worked = entry.helped,
		ended = entry.ended,
		not_helped = not_helped,
		similarity = hit.score,
		sure = hit.sure,
	}
end

--- Which entries are taken: those that the rules are sure of, or all that may be like, for a model to judge.
type Width = {
	part: "total" | "possible",
	--- The least score, and the most sessions.
	least: number,
	most: number,
	--- What an execution may be less like than the best one of its session, and still stand for it.
	margin: number,
}

local SURE: Width = { part = "total", least = rank.ENOUGH, most = MAX_PASTS, margin = math.huge }
local WIDE: Width = { part = "possible", least = rank.POSSIBLE, most = recall.MAX_CANDIDATES, margin = 0.15 }

--- An execution of the past, the one of its failures that is most like, and how like that is.
type Hit = { entry: past.Entry, failure: report.Failure?, score: number, sure: boolean }

--- Returns the executions of each session that are like one of these failures.
local function hits_of(sides: { rank.Side }, width: Width, but: string?): { { Hit } }
	local entries = past.entries(but)
	local frequencies = past.frequencies(entries)
	local by_session: { [string]: { Hit } } = {}
	for _, entry in entries do
		local best: Hit? = nil
		for index, side in entry.sides do
			for _, now in sides do
				local scored = rank.score(now, side, entry.told, frequencies)
				local score = if width.part == "total" then scored.total else scored.possible
				if best == nil or score > best.score then
					best = { entry = entry, failure = entry.failures[index], score = score, sure = scored.total >= rank.ENOUGH }
				end
			end
		end
		if best ~= nil and best.score >= width.least then
			local hits = by_session[entry.session_id] or {}
			by_session[entry.session_id] = hits
			table.insert(hits, best)
		end
	end
	local all: { { Hit } } = {}
	for _, hits in by_session do
		table.insert(all, hits)
	end
	return all
end

--- Returns the entries that are like one of these failures, each session once: by the execution that was most like, one whose
--- fix helped before one whose fix did not. What did not help in that session goes with it.
local function search(sides: { rank.Side }, width: Width, but: string?): { Past }
	local found: { Past } = {}
	for _, all in hits_of(sides, width, but) do
		local top = -math.huge
		for _, hit in all do
			top = math.max(top, hit.score)
		end
		local hits = list.filter(all, function(hit: Hit): boolean
			return hit.score >= top - width.margin
		end)
		table.sort(hits, function(a, b)
			local one, other = a.entry.helped == true, b.entry.helped == true
			return if one == other then a.score > b.score else one
		end)
		local best, not_helped = hits[1], {}
		for index, hit in hits do
			local tried = hit.entry.strategy or hit.entry.fix
			if index > 1 and hit.entry.helped == false and tried ~= nil then
				table.insert(not_helped, tried .. (if hit.entry.ended then ` ({hit.entry.ended})` else ""))
			end
		end
		table.insert(found, shown(best, not_helped))
	end
	table.sort(found, function(a, b)
		return if a.similarity == b.similarity then a.session_id < b.session_id else a.similarity > b.similarity
	end)
	return table.move(found, 1, math.min(#found, width.most), 1, {})
end

local function sides_of(failures: { report.Failure }): { rank.Side }
	local sides: { rank.Side } = {}
	for index, failure in failures do
		if index <= rank.MAX_FAILURES then
			table.insert(sides, rank.side(failure))
		end
	end
	return sides
end

--- Returns past failures like these, the most alike first, without those of the session `but`.
function recall.find_similar(failures: { report.Failure }, but: string?): { Past }
	return store.guarded({}, function(): { Past }
		return search(sides_of(failures), SURE, but)
	end)
end

--- Returns past failures that may be like these, for a model that reads the code to judge: more than `find_similar`, the most
--- likely first, without those of the session `but`. What it does not confirm is to be shown to nobody. `sure` tells which of
--- them `find_similar` would offer.
function recall.find_candidates(failures: { report.Failure }, but: string?): { Past }
	return store.guarded({}, function(): { Past }
		return search(sides_of(failures), WIDE, but)
	end)
end

--- Returns past failures like those in the output of a run in the worktree at `top`; none where no parser knows it. The
--- shots of this run itself are not among them.
function recall.find_in_run(ran: git.Ran, top: string): { Past }
	return store.guarded({}, function(): { Past }
		local read = results.read(ran, top)
		return if read.framework == "unknown" then {} else search(sides_of(read.failures), SURE, entries.shots_session())
	end)
end

--- Returns past failures like one that a person describes in words.
function recall.find_described(described: string): { Past }
	return store.guarded({}, function(): { Past }
		local kind = errors.kind(nil, described)
		for word in string.gmatch(described, "[%a_][%w_]*") do
			if errors.is_common_name(word) and string.find(word, "%l[EF]") ~= nil then
				kind = errors.kind(word, "")
			end
		end
		return search({ rank.described(described, kind) }, SURE)
	end)
end

--- Returns the patterns that are offered for these failures: they helped often enough, say what to do, and fit. `similar` is
--- what `find_candidates` or `find_similar` returned for them, where one was asked already.
function recall.offered_patterns(failures: { report.Failure }, similar: { Past }?): { Pattern }
	return store.guarded({}, function(): { Pattern }
		local ids: { [string]: boolean } = {}
		local like: { Past } = similar or search(sides_of(failures), WIDE)
		for _, item in like do
			-- A candidate of which little speaks for a like cause has not met this pattern's mistake for sure.
			if item.similarity >= rank.ENOUGH then
				ids[item.session_id] = true
			end
		end
		return patterns.offered(failures, ids)
	end)
end

--- Returns past failures and patterns as a text for a model: observations with their dates and success rates, in at most
--- 2,000 tokens. Empty where there is nothing.
function recall.for_model(found: { Past }, known: { Pattern }): string
	return store.guarded("", function(): string
		return render.for_model(found, known)
	end)
end

--- Returns the same for a model that is to judge which of the past failures have a like cause: each has a name, `P1` for the
--- first one. Returns how many of them are told, too.
function recall.for_judge(found: { Past }, known: { Pattern }): (string, number)
	local said = store.guarded({ text = "", count = 0 }, function(): render.Judged
		return render.for_judge(found, known)
	end)
	return said.text, said.count
end

--- Returns a question for each past failure, for a person who debugs; a question claims nothing. English, or French (`fr`).
function recall.for_person(found: { Past }, language: string?): { string }
	return store.guarded({}, function(): { string }
		return render.for_person(found, language)
	end)
end

return recall
