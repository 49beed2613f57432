--!strict
--- What the user said in confidence: which entries would tell it, and which statements of a brief do.

local document = require("../common/document")
local ledger = require("../common/ledger")
local list = require("../common/list")
local marked = require("../common/marked")
local notebook = require("./notebook")
local session = require("./session")
local similarity = require("../common/similarity")

local confidences = {}

--- A statement of a brief that tells a confidence.
export type Told = { section: string, unit: marked.Unit }

--- How much of a confidence's words a statement has that tells it in other words, and how many of them at least.
local TOLD, FEWEST = 0.7, 3

--- Whether an entry rests on what was said in confidence, or gave way because of it: it would be told by that.
function confidences.stands_behind(doc: session.Doc, entry: ledger.Entry): boolean
	if entry.quote ~= nil and session.is_private(doc, entry.quote) then
		return true
	end
	return list.some(doc.nietz.ledger.entries, function(other): boolean
		return other.of == entry.id and other.quote ~= nil and session.is_private(doc, other.quote)
	end)
end

--- Returns what holds and may be told.
function confidences.tellable(doc: session.Doc): { ledger.Entry }
	return list.filter(notebook.holding(doc), function(entry): boolean
		return not confidences.stands_behind(doc, entry)
	end)
end

--- Returns all that the user said openly, as one text.
local function said_openly(doc: session.Doc): string
	local lines = { doc.nietz.topic }
	for _, entry in doc.session.history do
		for _, answer in entry.responses do
			table.insert(lines, session.without_private(doc, answer))
		end
	end
	for _, note in doc.nietz.notes do
		table.insert(lines, session.without_private(doc, note.text))
	end
	for _, entry in confidences.tellable(doc) do
		table.insert(lines, entry.text)
	end
	return table.concat(lines, "\n")
end

--- Whether a statement has the very words of a confidence, or most of them with one that was said nowhere else.
local function tells(statement: string, quote: string, openly: similarity.Stems): boolean
	if ledger.is_said(quote, statement) then
		return true
	end
	local secret, there = similarity.stems(quote).list, similarity.stems(statement).set
	local shared = list.filter(secret, function(stem): boolean
		return there[stem] == true
	end)
	return #shared >= FEWEST and #shared >= TOLD * #secret and list.some(shared, function(stem): boolean
		return not openly.set[stem]
	end)
end

--- Returns the statements of a brief that tell what was said in confidence.
function confidences.told(doc: session.Doc, made: document.Document, sections: { string }): { Told }
	local quotes: { string } = doc.nietz.private or {}
	local found: { Told } = {}
	if #quotes == 0 then
		return found
	end
	local openly = similarity.stems(said_openly(doc))
	for _, section in sections do
		for _, unit in marked.units(made[section] or "") do
			local is_told = list.some(quotes, function(quote): boolean
				return tells(unit.text, quote, openly)
			end)
			if is_told then
				table.insert(found, { section = section, unit = unit })
			end
		end
	end
	return found
end

--- Returns a brief without the statements that tell what was said in confidence.
function confidences.without(doc: session.Doc, made: document.Document, sections: { string }): document.Document
	local edits = list.map(confidences.told(doc, made, sections), function(one): document.Edit
		return { section = one.section, unit = one.unit }
	end)
	return document.edited(made, edits)
end

return confidences
