--!strict
--- A session as Markdown for others to read: as an issue, as a postmortem, or as notes; and whole, as `show` has it. Pure. Titles are in
--- the language of whoever asks; what was said stays as it was said.

local markdown = require("../common/markdown")
local session = require("./session")
local session_files = require("./session_files")
local text = require("@nietz/text")
local translations = require("../common/translations")
local vocabulary = require("./vocabulary")

local export = {}

--- The longest title, in letters.
local LONGEST_TITLE = 80

--- Something that the developer said, by our own key: what they saw, believed or ruled out.
type Entry = { quote: string, turn: number?, evidence: string?, by: string? }
--- Something that they showed.
type Evidence = { name: string, kind: string?, text: string? }

local function quoted(value: string): string
	local lines = {}
	for _, line in text.lines(text.trim(value)) do
		table.insert(lines, text.trim(`> {line}`))
	end
	return table.concat(lines, "\n")
end

--- Returns a text between fences that are longer than any in it.
local function fenced(value: string): string
	local fence = "```"
	while string.find(value, fence, 1, true) ~= nil do
		fence ..= "`"
	end
	return `{fence}\n{text.trim(value)}\n{fence}`
end

--- Returns a problem as it reads best: several lines, such as a traceback, stay as they are.
local function problem(doc: session.Doc): string
	local said = text.trim(doc.problemDescription)
	return if string.find(said, "\n", 1, true) ~= nil then fenced(said) else said
end

local function title(doc: session.Doc): string
	local first = text.lines(text.trim(doc.problemDescription))[1] or ""
	return text.truncate(first, LONGEST_TITLE)
end

--- Returns the entries of a part of what is known, a line each.
local function entries(doc: session.Doc, name: string): { string }
	local lines = {}
	local known = doc.nietz and doc.nietz.ledger
	for _, entry in (known and known[name] or {}) :: { Entry } do
		local where = if entry.evidence then ` (\`{entry.evidence}\`)` else ""
		local by = if entry.by then `: {entry.by}` else ""
		table.insert(lines, `- {markdown.literal(entry.quote)}{where}{by}`)
	end
	return lines
end

--- Returns the developer's explanation, where they gave one: what they said when they counted it as solved.
local function explanation(doc: session.Doc): string?
	local last = doc.transcript[#doc.transcript]
	return if doc.outcome == "solved" and last ~= nil and last.response ~= "" then last.response else nil
end

local function own(doc: session.Doc): any
	return doc.nietz or {}
end

local function add(out: { string }, heading: string, body: string?)
	if body ~= nil and body ~= "" then
		table.insert(out, `## {heading}\n\n{body}`)
	end
end

local function evidence(doc: session.Doc): string
	local parts: { string } = {}
	for _, path in doc.codeFiles do
		table.insert(parts, `- \`{path}\``)
	end
	local shown: { string } = {}
	for _, one in (own(doc).evidence or {}) :: { Evidence } do
		if table.find(doc.codeFiles, one.name) == nil then
			table.insert(parts, `- {one.name}`)
		end
		if one.text ~= nil then
			table.insert(shown, `<details><summary>{one.name}</summary>\n\n{fenced(one.text)}\n\n</details>`)
		end
	end
	return table.concat({ table.concat(parts, "\n"), table.concat(shown, "\n\n") }, if #shown > 0 then "\n\n" else "")
end

local function verification(doc: session.Doc, t: translations.Translate): string?
	local ran = own(doc).verification
	if ran == nil then
		return nil
	end
	return t(if ran.holds then "export.holds" else "export.fails", { command = ran.command, exit = ran.exit })
end

--- Returns all turns: question, answer, and with `tags` what was seen in it.
local function turns(doc: session.Doc, t: translations.Translate, tags: boolean): string
	local out = {}
	for _, turn in doc.transcript :: { session.Turn } do
		local said = if turn.response == "" then `_{t("export.unanswered")}_` else quoted(turn.response)
		local seen = if tags and #turn.behaviorTags > 0
			then `\n\n{t("export.tags", { tags = table.concat(turn.behaviorTags, ", ") })}`
			else ""
		table.insert(out, `**{turn.turnNumber}.** {turn.question}\n\n{said}{seen}`)
	end
	return table.concat(out, "\n\n")
end

local function scores(doc: session.Doc, lang: string, t: translations.Translate): string
	local state = own(doc).state
	if state == "open" or state == "unscored" then
		return t(`export.{state}`)
	end
	local lines = {}
	for _, dimension in vocabulary.DIMENSIONS do
		local score = doc.skillScores[dimension.name]
		if score ~= nil then
			table.insert(lines, `- {translations.pick(dimension.label, lang)}: {score}/10`)
		end
	end
	return table.concat(lines, "\n")
end

local function folded(summary: string, body: string): string
	return `<details><summary>{summary}</summary>\n\n{body}\n\n</details>`
end

local function how_it_ended(doc: session.Doc, t: translations.Translate): string
	local outcome = if own(doc).state == "open" then "open" else doc.outcome
	local day = string.sub(doc.timestamp, 1, 10)
	return `{t(`outcomes.{outcome}`)} · {day} · {translations.counted(t, "export.questions", #doc.transcript)}`
end

local function known(doc: session.Doc, t: translations.Translate, out: { string })
	add(out, t("export.seen"), table.concat(entries(doc, "seen"), "\n"))
	add(out, t("export.ruled_out"), table.concat(entries(doc, "ruled_out"), "\n"))
	add(out, t("export.believed"), table.concat(entries(doc, "believed"), "\n"))
end

--- How each format is made up.
local MADE = {
	issue = function(doc, _lang, t)
		local out = { `# {title(doc)}` }
		add(out, t("export.problem"), problem(doc))
		add(out, t("export.evidence"), evidence(doc))
		known(doc, t, out)
		add(out, t("export.cause"), explanation(doc))
		add(out, t("export.verification"), verification(doc, t))
		table.insert(out, folded(translations.counted(t, "export.questions", #doc.transcript), turns(doc, t, false)))
		return out
	end,
	postmortem = function(doc, _lang, t)
		local out = { `# {t("export.postmortem", { title = title(doc) })}`, how_it_ended(doc, t) }
		add(out, t("export.happened"), problem(doc))
		add(out, t("export.cause"), explanation(doc) or t("export.no_cause"))
		known(doc, t, out)
		add(out, t("export.evidence"), evidence(doc))
		add(out, t("export.verification"), verification(doc, t) or t("export.not_verified"))
		add(out, t("export.learnt"), if own(doc).reflection then quoted(own(doc).reflection.answer) else nil)
		table.insert(out, folded(translations.counted(t, "export.questions", #doc.transcript), turns(doc, t, false)))
		return out
	end,
	notes = function(doc, lang, t)
		local out = { `# {title(doc)}`, `{how_it_ended(doc, t)} · \`{doc.id}\`` }
		add(out, t("export.problem"), problem(doc))
		add(out, t("export.evidence"), evidence(doc))
		add(out, t("export.questions_and_answers"), turns(doc, t, true))
		known(doc, t, out)
		add(out, t("export.verification"), verification(doc, t))
		add(out, t("export.learnt"), if own(doc).reflection then quoted(own(doc).reflection.answer) else nil)
		add(out, t("export.scores"), scores(doc, lang, t))
		return out
	end,
} :: { [string]: (doc: session.Doc, lang: string, t: translations.Translate) -> { string } }

--- Returns a session in one of the formats.
function export.markdown(doc: session.Doc, format: string, lang: string, t: translations.Translate): string
	return table.concat(MADE[format](doc, lang, t), "\n\n")
end

--- What a line of the list holds.
export.COLUMNS = { "id", "day", "outcome", "voice", "questions", "kind", "problem" }

--- Returns a session as a line of the list.
function export.row(found: session_files.Parts): { any }
	return {
		string.sub(found.id, 1, 8),
		string.sub(found.timestamp, 1, 10),
		session_files.outcome(found),
		session_files.voice(found),
		found.count or 0,
		session_files.kind(found),
		(string.gsub(text.trim(found.problem or ""), "%s+", " ")),
	}
end

return export
