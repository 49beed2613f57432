--!strict
--- A large mind writes the brief twice: first as somebody who has heard the conversation and nothing else, then from that draft and all
--- that was noted, as Markdown with marks of what it rests on. What is missing in it or wrong goes back to it once; what is missing then
--- is told in a sentence as it was noted.

local app = require("./app")
local brief_check = require("./brief_check")
local brief_document = require("./brief_document")
local brief_sections = require("./brief_sections")
local clock = require("@nietz/clock")
local confidences = require("./confidences")
local document = require("../common/document")
local ledger = require("../common/ledger")
local list = require("../common/list")
local marked = require("../common/marked")
local presence = require("../common/presence")
local session = require("./session")
local shape = require("../common/shape")
local similarity = require("../common/similarity")
local text = require("@nietz/text")
local transcript = require("./transcript")

local brief_writing = {}

--- How many of the words of an entry a brief has that tells it without its mark.
local TOLD = 0.7
--- The most words of a draft: so many, and this share of what the user said, up to a limit; what is added to it, and letters of a title.
--- Whoever may write more does, and judges liked the shorter of two that said the same.
local LEAST_WORDS, SHARE, MOST_WORDS, ADDED, TITLE = 700, 0.6, 1300, 200, 100
--- The most parts of a brief.
local MOST_PARTS = 20

--- Returns how many words the draft of a brief may have.
local function draft_words(self: app.App): number
	local words = LEAST_WORDS + SHARE * marked.length(transcript.said(self.doc))
	return math.min(MOST_WORDS, 50 * math.floor(words / 50))
end

--- Returns the sections that this session's brief has.
local function sections_of(self: app.App): { string }
	return list.filter(brief_document.WRITTEN, function(section): boolean
		return section ~= "steps" or self.options.plan
	end)
end

local function words_of(entry: ledger.Entry): string
	return brief_document.words(brief_document.item_of(entry))
end

--- Returns what a brief is checked by. What files of the project say is said, and so are the days of the session.
local function basis_of(self: app.App): document.Basis
	local held = confidences.tellable(self.doc)
	local today = string.sub(clock.now(), 1, 10)
	local lines = { self.doc.nietz.topic, string.sub(self.doc.session.created, 1, 10), today }
	-- A day that was said without its year is of this one or of the next.
	table.insert(lines, tostring((tonumber(string.sub(today, 1, 4)) or 0) + 1))
	for _, entry in held do
		table.insert(lines, words_of(entry))
		table.insert(lines, entry.quote or "")
	end
	for _, file in self.reading.files do
		table.insert(lines, file.text)
	end
	for _, risk in self.doc.nietz.risks do
		table.insert(lines, `{risk.risk} {risk.mitigation}`)
	end
	local gone = list.map(ledger.revoked(self.doc.nietz.ledger, session.counts(self.doc)), words_of)
	local sources = list.map(held, function(entry): document.Source
		local is_theirs = entry.by == "user" and brief_document.OF_KIND[entry.kind] ~= nil and brief_check.stands_alone(entry)
		local is_asked = entry.kind ~= "step" or self.options.plan
		return { id = tostring(entry.id), words = words_of(entry), wanted = is_theirs and is_asked }
	end)
	return {
		sources = sources,
		said = table.concat(lines, "\n"),
		gone = table.concat(gone, "\n"),
		sections = sections_of(self),
		heads = { "lead" },
		title = self.doc.nietz.topic,
		suggested = self.t("brief.suggested"),
		words = draft_words(self) + ADDED,
		italics = true,
		follows = true,
	}
end

--- Returns ids as a prompt names them, of what is wanted or of what is not.
local function ids_of(basis: document.Basis, wanted: boolean): string
	local found: { string } = {}
	for _, source in basis.sources do
		if source.wanted == wanted then
			table.insert(found, source.id)
		end
	end
	return table.concat(found, ", ")
end

--- Returns the schema of a brief: its parts, what stands above all headings, and the line below it where that is its writer's, too.
local function schema_of(self: app.App, sections: { string }): shape.Shape
	local kinds = list.filter(sections, function(section): boolean
		return section ~= "lead" and section ~= "closing"
	end)
	local part = shape.object({ "of", "heading", "text" }, {
		of = { enum = kinds },
		heading = shape.text(1, TITLE),
		text = shape.text(1),
	})
	local order = { "parts", "lead", "title" }
	local members: { [string]: shape.Shape } = {
		parts = shape.list(part, 1, MOST_PARTS),
		lead = shape.text(1),
		title = shape.text(3, TITLE),
	}
	if app.follows_user(self) then
		table.insert(order, "came_about")
		members.came_about = shape.text(0, 2 * TITLE)
	end
	return shape.object(order, members)
end

--- A part as its writer gives it.
type Part = { of: string, heading: string, text: string }

--- Returns the parts of a brief: those of one section and one heading are one.
local function joined(parts: { Part }): { Part }
	local found: { Part } = {}
	for _, part in parts do
		local heading = app.to_line(part.heading)
		local before = list.find(found, function(one): boolean
			return one.of == part.of and one.heading == heading
		end)
		if before ~= nil then
			before.text ..= `\n\n{part.text}`
		else
			table.insert(found, { of = part.of, heading = heading, text = part.text })
		end
	end
	return found
end

--- Returns how a part is named to who mends it: as its section, and where there are several of it, by its heading, too.
local function name_of(parts: { Part }, part: Part): string
	local is_one_of_several = list.some(parts, function(other): boolean
		return other ~= part and other.of == part.of
	end)
	return if is_one_of_several then `{part.of}: {part.heading}` else part.of
end

--- Returns what stands above a section that the program adds.
local function heading_of(self: app.App, section: string): string
	return self.t(`brief.{if section == "steps" then "next" else section}`)
end

--- Puts a part where it usually stands in a brief: before the first of those that come after it.
local function insert(parts: { Part }, part: Part)
	local own = table.find(brief_document.WRITTEN, part.of) or 0
	for at, other in parts do
		if (table.find(brief_document.WRITTEN, other.of) or 0) > own then
			table.insert(parts, at, part)
			return
		end
	end
	table.insert(parts, part)
end

--- Returns the first part that is a section; one without a word is put in its place where there is none.
local function part_of(self: app.App, parts: { Part }, section: string): Part
	local there = list.find(parts, function(part): boolean
		return part.of == section
	end)
	if there ~= nil then
		return there
	end
	local made: Part = { of = section, heading = if section == "closing" then "" else heading_of(self, section), text = "" }
	insert(parts, made)
	return made
end

--- How a heading says that what stands below it holds no more, in the languages of the flows and their neighbours.
local HOLDS_NO_MORE =
	"no (more|longer)|taken back|withdrawn|replaced|superseded|dropped|struck|plus (valable|vrai|d'actualite)|ne (vaut|tient|compte|valent|tiennent|comptent) plus|retire|abandonn|remplace|nicht mehr|uberholt|verworfen|zuruckgenommen|ersetzt|gestrichen|hinfallig|ya no|retirad|descartad|non val"

--- Returns the Markdown of each part by its name, and what a brief of these parts is checked by.
local function taken(parts: { Part }, basis: document.Basis): (document.Document, document.Basis)
	local made: document.Document = {}
	local of_parts = table.clone(basis)
	local former: { string } = {}
	of_parts.former = former
	of_parts.sections = list.map(parts, function(part): string
		local name = name_of(parts, part)
		made[name] = part.text
		if text.search(text.fold(part.heading), HOLDS_NO_MORE) ~= nil then
			table.insert(former, name)
		end
		return name
	end)
	return made, of_parts
end

--- Returns what somebody writes who has heard the conversation alone, or nil where no reply can be used.
local function drafted(self: app.App): string?
	local value = app.ask_model(self, {
		prompt = "brief_draft",
		plain = true,
		alone = true,
		temperature = 0.2,
		vars = {
			topic = self.doc.nietz.topic,
			files = self.reading.files,
			conversation = transcript.spoken(self.doc),
			steps = self.options.plan,
			tasks = self.options.format == "issue",
			words = draft_words(self),
		},
		schema = shape.object({ "brief" }, { brief = shape.text(3) }),
		repairs = 1,
	})
	return if value ~= nil then value.brief else nil
end

--- Whether a brief has most words of a source.
local function has_words(told: similarity.Stems, source: document.Source): boolean
	return similarity.shared_stems(source.words, told) >= TOLD * #similarity.words(source.words)
end

--- Returns what no section tells, with or without its mark: its words, or a figure or name of it.
local function untold(made: document.Document, basis: document.Basis): { document.Missing }
	local told = marked.plain(document.whole(made, basis.sections))
	local all, stems = `{basis.title}\n{told}`, similarity.stems(told)
	local names = presence.names_of(list.map(basis.sources, function(source): string
		return if source.wanted then source.words else ""
	end))
	return list.filter(document.missing(made, basis), function(one): boolean
		local has_all = #presence.lacking(one.source.words, all, names) == 0
		return not has_all or (#one.lacks == 0 and not has_words(stems, one.source))
	end)
end

--- How something is named by the letter that it had below a question, in the languages of the flows and their neighbours.
local LETTERED = "\\b(option|opcion|opzione|optie|variante|vorschlag|antwort|suggestion|proposition) [a-f]\\b"

--- Returns the statements that name what was suggested by its letter, which their reader never sees; the user's own options are theirs.
local function lettered(made: document.Document, basis: document.Basis): { document.Fault }
	local said = text.fold(basis.said)
	local found: { document.Fault } = {}
	for _, section in basis.sections do
		for _, unit in marked.units(made[section] or "") do
			local folded = text.fold(unit.text)
			local hit = text.search(folded, LETTERED)
			while hit ~= nil and string.find(said, hit.text, 1, true) ~= nil do
				hit = text.search(folded, LETTERED, hit.last + 1)
			end
			if hit ~= nil then
				local why = `names what was suggested by its letter, which its reader never sees; say what it is ("{unit.text}")`
				table.insert(found, { section = section, why = why })
			end
		end
	end
	return found
end

--- Asks once more for what is missing or wrong, puts the parts that it gives in place of those that are there, and returns what of
--- what was said need not be told.
local function correct(self: app.App, parts: { Part }, whole: document.Basis, exchange: app.Exchange): { document.Source }
	local made, basis = taken(parts, whole)
	local missing = untold(made, basis)
	local faults = document.faults(made, basis)
	for _, one in confidences.told(self.doc, made, basis.sections) do
		local why = `tells what was said in confidence; leave it out, with all that lets it be guessed ("{one.unit.text}")`
		table.insert(faults, { section = one.section, why = why })
	end
	local by_letter = lettered(made, basis)
	table.move(by_letter, 1, #by_letter, #faults + 1, faults)
	if #missing == 0 and #faults == 0 then
		return {}
	end
	local named: { [string]: Part } = {}
	for at, part in parts do
		named[basis.sections[at]] = part
	end
	local names = table.clone(basis.sections)
	for _, section in whole.sections do
		local is_there = list.some(parts, function(part): boolean
			return part.of == section
		end)
		if not is_there then
			table.insert(names, section)
		end
	end
	local leavable = document.leavable(missing)
	local chatter = list.keys(leavable)
	local order, members = { "changes" }, {} :: { [string]: shape.Shape }
	if #chatter > 0 then
		table.insert(order, "chatter")
		members.chatter = shape.list({ enum = chatter }, 0, #chatter)
	end
	local changed = shape.object({ "section", "text" }, { section = { enum = names }, text = shape.text(0) })
	members.changes = shape.list(changed, 0, #names)
	local changes = app.ask_model(self, {
		prompt = "brief_changes",
		plain = true,
		role = "author",
		after = exchange,
		temperature = 0.2,
		vars = {
			missing = list.map(missing, function(one): { id: string, line: string, lacks: string, chatter: string }
				local name = document.name_of(leavable, one.source)
				return { id = one.source.id, line = one.source.words, lacks = table.concat(one.lacks, ", "), chatter = name }
			end),
			chatter = #chatter > 0,
			faults = faults,
		},
		schema = shape.object(order, members),
		repairs = 1,
	})
	if changes == nil then
		return {}
	end
	for _, change: { section: string, text: string } in changes.changes do
		local part = named[change.section]
		if part ~= nil or text.trim(change.text) ~= "" then
			local changed_part = part or part_of(self, parts, change.section)
			changed_part.text = change.text
		end
	end
	return list.map(changes.chatter or {}, function(name: string): document.Source
		return leavable[name]
	end)
end

--- Returns an entry as plain sentences, with its mark.
local function sentence_of(self: app.App, entry: ledger.Entry): string
	local parts = { entry.text }
	if (entry.why or "") ~= "" then
		local why = string.gsub(entry.why :: string, "^%l", string.upper)
		table.insert(parts, self.t("brief.because", { why = why }))
	end
	if (entry.rejected or "") ~= "" then
		table.insert(parts, self.t("brief.instead", { rejected = entry.rejected :: string }))
	end
	for _, more in { entry.owner or "", entry.date or "" } do
		if more ~= "" and not ledger.is_said(more, entry.text) then
			table.insert(parts, more)
		end
	end
	local sentences = list.map(parts, function(part): string
		return if string.find(part, "[%.!%?…]$") then part else `{part}.`
	end)
	return `{table.concat(sentences, " ")} [{entry.id}]`
end

--- Where an entry is told that its writer passed over, by its kind; others close the brief.
local PLACE: { [string]: string } = { constraint = "constraints", open = "open", contested = "open" }

--- Tells entries that nothing tells: each in its place, which a brief may not have yet.
local function place(self: app.App, parts: { Part }, entries: { ledger.Entry })
	for _, entry in entries do
		local part = part_of(self, parts, PLACE[entry.kind] or "closing")
		local before, line = part.text, sentence_of(self, entry)
		if part.of == "closing" then
			part.text = if before == "" then line else `{before} {line}`
		else
			local is_list = string.find(before, "\n?[%-%*] [^\n]*$") ~= nil
			part.text = if before == "" then `- {line}` elseif is_list then `{before}\n- {line}` else `{before}\n\n- {line}`
		end
	end
end

--- Returns a brief of these parts as it is shown; several of one section are one there, below their headings, for a template that has
--- one place for it.
local function shown(parts: { Part }, whole: document.Basis): brief_document.Brief
	local made, basis = taken(parts, whole)
	local plain = document.shown(made, basis.sections)
	local sections: { [string]: string } = {}
	local headed: { Part } = {}
	local of_name: { [string]: string } = {}
	for at, part in parts do
		local name = basis.sections[at]
		local before, words = sections[part.of], plain[name]
		of_name[name] = part.of
		sections[part.of] = if before ~= nil then `{before}\n\n**{part.heading}**\n\n{words}` else words
		if part.heading ~= "" then
			table.insert(headed, { of = part.of, heading = part.heading, text = words })
		end
	end
	local rests = list.map(document.rests(made, basis), function(rest): { section: string, text: string, from: { number } }
		local from = list.map(rest.from, function(id): number
			return tonumber(id) or 0
		end)
		return { section = of_name[rest.section], text = rest.text, from = from }
	end)
	return { sections = sections, rests = rests, parts = headed }
end

--- Returns the brief that a large mind writes, or nil where it could not.
function brief_writing.write(self: app.App): brief_document.Brief?
	local basis = basis_of(self)
	local own = self.doc.nietz
	local value, exchange = app.ask_model(self, {
		prompt = "brief",
		plain = true,
		role = "author",
		temperature = 0.2,
		vars = {
			user = ids_of(basis, true),
			others = ids_of(basis, false),
			risks = own.risks,
			approaches = own.approaches or {},
			steps = self.options.plan,
			tasks = self.options.format == "issue",
			words = basis.words,
			draft = drafted(self) or "",
			came_about = if app.follows_user(self) then brief_sections.came_about(self) else "",
			frame = self.t("language"),
		},
		schema = schema_of(self, basis.sections),
		repairs = 1,
	})
	if value == nil or exchange == nil then
		return nil
	end
	local parts = joined(value.parts)
	insert(parts, { of = "lead", heading = "", text = value.lead })
	local left = correct(self, parts, basis, exchange)
	local first, of_parts = taken(parts, basis)
	local made = document.clean(confidences.without(self.doc, first, of_parts.sections), of_parts)
	for at, part in parts do
		part.text = made[of_parts.sections[at]]
	end
	local told = similarity.stems(marked.plain(document.whole(made, of_parts.sections)))
	local passed = list.filter(untold(made, of_parts), function(one): boolean
		return not has_words(told, one.source) and table.find(left, one.source) == nil
	end)
	place(
		self,
		parts,
		list.filter(confidences.tellable(self.doc), function(entry): boolean
			return list.some(passed, function(one): boolean
				return one.source.id == tostring(entry.id)
			end)
		end)
	)
	local brief = shown(parts, basis)
	brief.sections.title = app.to_line(value.title)
	local came_about = app.to_line(value.came_about or "")
	brief.came_about = if came_about ~= "" then came_about else nil
	return brief
end

return brief_writing
