--!strict
--- A large mind writes the brief whole, from the conversation that all its requests begin with. What is missing in it or wrong goes
--- back to it once, and what is missing then is put in as it was noted.

local app = require("./app")
local brief_check = require("./brief_check")
local brief_document = require("./brief_document")
local clock = require("@nietz/clock")
local ledger = require("../common/ledger")
local list = require("../common/list")
local notebook = require("./notebook")

local brief_writing = {}

--- How long a brief is to be: so many words, and so many more for each thing that the user said.
local WORDS, WORDS_EACH = 500, 20

--- Returns the sections that this session's brief has.
function brief_writing.sections(self: app.App): { string }
	return list.filter(brief_document.SECTIONS, function(section): boolean
		return section ~= brief_document.SAID and (section ~= "steps" or self.options.plan)
	end)
end

--- Returns what a brief is checked by. What files of the project say is said, and so are the days of the session.
function brief_writing.basis(self: app.App): brief_check.Basis
	local held = notebook.holding(self.doc)
	local today = string.sub(clock.now(), 1, 10)
	local lines = { self.doc.nietz.topic, string.sub(self.doc.session.created, 1, 10), today }
	-- A day that was said without its year is of this one or of the next.
	table.insert(lines, tostring((tonumber(string.sub(today, 1, 4)) or 0) + 1))
	for _, entry in held do
		for _, part in { entry.text, entry.quote or "", entry.why or "", entry.rejected or "", entry.owner or "", entry.date or "" } do
			table.insert(lines, part)
		end
	end
	for _, file in self.reading.files do
		table.insert(lines, file.text)
	end
	return { held = held, said = table.concat(lines, "\n"), sections = brief_writing.sections(self) }
end

--- Returns the ids of these entries as a prompt names them.
local function ids_of(entries: { ledger.Entry }): string
	return table.concat(
		list.map(entries, function(entry): string
			return `#{entry.id}`
		end),
		", "
	)
end

--- Returns the variables of the prompt that asks for the whole brief.
local function task_of(self: app.App, basis: brief_check.Basis): app.Vars
	local by_user = list.filter(basis.held, function(entry): boolean
		return entry.by == "user" and brief_check.stands_alone(entry)
	end)
	local others = list.filter(basis.held, function(entry): boolean
		return table.find(by_user, entry) == nil
	end)
	local own = self.doc.nietz
	return {
		user = ids_of(by_user),
		others = ids_of(others),
		risks = own.risks,
		approaches = own.approaches or {},
		steps = self.options.plan,
		words = math.ceil((WORDS + WORDS_EACH * #by_user) / 50) * 50,
	}
end

--- Asks once more for what is missing or wrong, and returns the document with the changes.
local function corrected(self: app.App, document: brief_document.Document, basis: brief_check.Basis, asked: string): brief_document.Document
	local missing = brief_check.missing(document, basis, false)
	local faults = brief_check.faults(document, basis)
	if #missing == 0 and #faults == 0 then
		return document
	end
	local changes = app.ask_model(self, {
		prompt = "brief_changes",
		plain = true,
		role = "author",
		after = { asked = asked, answered = brief_document.encode(document, basis.sections) },
		temperature = 0.2,
		vars = {
			missing = list.map(missing, function(entry): { id: number, line: string, in_section: string }
				local section = brief_document.OF_KIND[entry.kind]
				return { id = entry.id, line = brief_document.words(brief_document.item_of(entry)), in_section = section }
			end),
			faults = faults,
		},
		schema = brief_document.changes_shape(basis.sections),
		repairs = 1,
	})
	return if changes ~= nil then brief_document.change(document, changes) else document
end

--- Returns the brief that a large mind writes; where it could not, what holds, each in its section.
function brief_writing.write(self: app.App): brief_document.Document
	local basis = brief_writing.basis(self)
	local document = brief_document.empty()
	local value, asked = app.ask_model(self, {
		prompt = "brief",
		plain = true,
		role = "author",
		temperature = 0.2,
		vars = task_of(self, basis),
		schema = brief_document.shape_of(basis.sections),
		repairs = 1,
	})
	if value ~= nil and asked ~= nil then
		for section, items in value do
			document[section] = items
		end
		-- What stands twice and can be left out without loss is no question to a model.
		document = brief_check.drop_doubles(document, basis)
		document = corrected(self, document, basis, asked.asked)
	end
	document = brief_check.clean(document, basis)
	brief_check.place_untold(document, brief_check.missing(document, basis, true))
	if #document.problem == 0 then
		document.problem = { { from = {}, text = self.doc.nietz.topic } }
	end
	return document
end

return brief_writing
