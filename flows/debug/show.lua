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

--- Returns a session's score card. One that ended without an answer has none.
function show.card(self: app.App): string
	local doc, t = self.doc, self.t
	local title = translations.counted(t, if doc.outcome == "solved" then "card.solved" else "card.left", #doc.transcript)
	if doc.nietz.state == "unscored" then
		return `{title}\n\n{t("card.unscored")}`
	end
	local lines = { title, "", "```" }
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

--- Returns how many sessions there are of each sort.
local function totals(t: translations.Translate, found: profile.Profile): string
	local parts = {
		translations.counted(t, "profile.total", found.totalSessions),
		translations.counted(t, "profile.solved", found.solvedCount),
		translations.counted(t, "profile.abandoned", found.abandonedCount),
	}
	if found.openCount > 0 then
		table.insert(parts, translations.counted(t, "profile.open", found.openCount))
	end
	if found.unscoredCount > 0 then
		table.insert(parts, translations.counted(t, "profile.unscored", found.unscoredCount))
	end
	return table.concat(parts, " | ")
end

--- Returns how a dimension goes, with the means that say so.
local function trend(t: translations.Translate, name: string, means: profile.Means): string
	local shown = `{ARROWS[name]} {t(`trends.{name}`)}`
	if means.before == nil or means.now == nil then
		return shown
	end
	return `{shown} ({string.format("%.1f", means.before)} → {string.format("%.1f", means.now)})`
end

--- Returns the growth profile; `short` leaves out what only its own command shows.
function show.profile(lang: string, t: translations.Translate, found: profile.Profile, short: boolean): string
	local lines = { t("profile.title"), "" }
	if found.totalSessions + found.openCount == 0 then
		table.insert(lines, t("profile.none"))
	else
		if found.totalSessions > 1 or found.openCount > 0 or not short then
			table.insert(lines, totals(t, found))
		end
	end
	if found.averageScores ~= nil then
		if #lines > 2 then
			table.insert(lines, "")
		end
		table.insert(lines, "```")
		local width = widest_label(lang)
		local averages = found.averageScores
		for _, dimension in vocabulary.DIMENSIONS do
			local average = averages[dimension.name]
			if average ~= nil then
				local goes = trend(t, found.recentTrend[dimension.name], found.recentMeans[dimension.name])
				local score = `{bar(average)}  {string.format("%4.1f", average)}`
				local row = `{pad(dimension_label(lang, dimension), width)}  {score}  {goes}`
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
		table.insert(lines, translations.counted(t, "profile.broken", found.brokenCount))
		for _, one in found.broken do
			table.insert(lines, `- \`{one.path}\`: {one.message}`)
		end
	end
	if #found.gone > 0 then
		table.insert(lines, "")
		table.insert(lines, translations.counted(t, "profile.gone", #found.gone))
		for _, folder in found.gone do
			table.insert(lines, `- \`{folder}\``)
		end
	end
	if found.newerCount > 0 then
		table.insert(lines, "")
		table.insert(lines, t("profile.newer", { count = found.newerCount, paths = table.concat(found.newer, ", ") }))
	end
	return table.concat(lines, "\n")
end

return show
