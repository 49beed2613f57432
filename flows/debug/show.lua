--!strict
--- The score card of a session and the growth profile as text: scores as bars, the last ones as a sparkline.

local app = require("./app")
local profile = require("./profile")
local scoring = require("./scoring")
local text = require("@nietz/text")
local translations = require("../common/translations")
local vocabulary = require("./vocabulary")

local show = {}

local CELLS = 10
local SPARKS = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" }
local ARROWS = { improving = "↗", declining = "↘", stable = "→" } :: { [string]: string }

local function bar(score: number): string
	local full = math.clamp(math.round(score), 0, CELLS)
	return string.rep("█", full) .. string.rep("░", CELLS - full)
end

local function sparkline(scores: { number }): string
	local out = ""
	for _, score in scores do
		out ..= SPARKS[math.clamp(math.ceil(score * #SPARKS / 10), 1, #SPARKS)]
	end
	return out
end

local function format_number(value: number): string
	return if value % 1 == 0 then string.format("%d", value) else string.format("%.1f", value)
end

local function pad(label: string, width: number): string
	return label .. string.rep(" ", width - text.width(label))
end

local function dimension_label(lang: string, dimension: vocabulary.Dimension): string
	return dimension.label[lang] or dimension.label.en or dimension.name
end

local function widest_label(lang: string): number
	local width = 0
	for _, dimension in vocabulary.DIMENSIONS do
		width = math.max(width, text.width(dimension_label(lang, dimension)))
	end
	return width
end

--- Returns a session's score card.
function show.card(self: app.App): string
	local doc, t = self.doc, self.t
	local count = #doc.transcript
	local lines =
		{ t(if count == 1 then "card.title_one" else "card.title", { count = count, outcome = t(`outcomes.{doc.outcome}`) }), "", "```" }
	local width = widest_label(self.lang)
	local rows = {}
	for _, dimension in vocabulary.DIMENSIONS do
		local score = doc.skillScores[dimension.name]
		if score ~= nil then
			local level = if score >= 8 then "strong" elseif score >= 5 then "moderate" else "weak"
			table.insert(
				rows,
				`{pad(dimension_label(self.lang, dimension), width)}  {bar(score)}  {format_number(score)}/10  {t(`levels.{level}`)}`
			)
		end
	end
	for index, row in rows do
		table.insert(lines, `{if index < #rows then "┣" else "┗"} {row}`)
	end
	table.insert(lines, "```")
	table.insert(lines, "")
	table.insert(lines, t(`card.by_{doc.nietz.scoredBy}`))
	local reasons = scoring.explain(self)
	if #reasons > 0 then
		table.insert(lines, "\n" .. table.concat(reasons, "\n"))
	end
	return table.concat(lines, "\n")
end

--- Returns the growth profile; `short` leaves out what only its own command shows.
function show.profile(lang: string, t: translations.Translate, found: profile.Profile, short: boolean): string
	local lines = { t("profile.title"), "" }
	if found.totalSessions == 0 then
		table.insert(lines, t("profile.none"))
	else
		if found.totalSessions > 1 or not short then
			table.insert(
				lines,
				t("profile.totals", {
					total = found.totalSessions,
					solved = found.solvedCount,
					abandoned = found.abandonedCount,
				})
			)
			table.insert(lines, "")
		end
		table.insert(lines, "```")
		local width = widest_label(lang)
		local averages = found.averageScores or {} :: { [string]: number }
		for _, dimension in vocabulary.DIMENSIONS do
			local average = averages[dimension.name]
			if average ~= nil then
				local trend = found.recentTrend[dimension.name]
				local score = `{bar(average)}  {string.format("%4.1f", average)}`
				local row = `{pad(dimension_label(lang, dimension), width)}  {score}  {ARROWS[trend]} {t(`trends.{trend}`)}`
				table.insert(lines, text.trim(`{row}  {sparkline(found.recentScores[dimension.name])}`))
			end
		end
		table.insert(lines, "```")
		for _, spot in found.blindSpots do
			local tag = vocabulary.find(spot.tag)
			local names = if tag then tag.spot else nil
			local what = if names then names[lang] or names.en else spot.tag
			table.insert(lines, "")
			table.insert(lines, t("profile.spot", { what = what, recent = spot.recent, sessions = spot.sessions }))
		end
	end
	if found.brokenCount > 0 then
		table.insert(lines, "")
		table.insert(lines, t("profile.broken", { count = found.brokenCount }))
		for _, one in found.broken do
			table.insert(lines, `- \`{one.path}\`: {one.message}`)
		end
	end
	if found.newerCount > 0 then
		table.insert(lines, "")
		table.insert(lines, t("profile.newer", { count = found.newerCount, paths = table.concat(found.newer, ", ") }))
	end
	return table.concat(lines, "\n")
end

return show
