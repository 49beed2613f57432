--!strict
--- What is wrong with a document that a large mind wrote, section by section, as marked Markdown (`marked.lua`), and what is missing in
--- it: all that was said and holds is cited where its figures and names stand, nothing that was taken back is told as holding, and
--- each figure was said, follows from what was said by a sum that stands beside it, or is marked as suggested. Pure.

local dates = require("./dates")
local figures = require("./figures")
local list = require("./list")
local marked = require("./marked")
local memo = require("./memo")
local number_words = require("./number_words")
local presence = require("./presence")
local similarity = require("./similarity")
local text = require("@nietz/text")

local document = {}

--- The Markdown of each section, by its name.
export type Document = { [string]: string }

--- Something that may be cited, and all that it says. What is `wanted` is told in any case; without an id, anywhere.
export type Source = { id: string, words: string, wanted: boolean }

--- What a document is checked by: what holds, all that was said and holds, what was taken back, the sections in their order, and the
--- title above them, whose names need not be told again. `heads` are those that say in short what others say. `suggested` is how a
--- suggestion is marked; `words` is how many words its writer is asked for at most. Where `follows`, a figure that comes of two that stand
--- near it needs no sum beside it. Where `italics`, what stands in italics is suggested, or in a
--- column that says so. Sections that are `former` tell what holds no more.
export type Basis = {
	sources: { Source },
	said: string,
	gone: string,
	sections: { string },
	heads: { string },
	title: string,
	suggested: string,
	words: number,
	follows: boolean?,
	italics: boolean?,
	former: { string }?,
}

--- A source that is not told: `lacks` is what of it no section has that cites it; where nothing cites it, nothing is in it.
export type Missing = { source: Source, lacks: { string } }

--- Something that is wrong with a section, as its writer is told.
export type Fault = { section: string, why: string }

--- How many sections are kept with what was read in them.
local MOST_READ = 64

--- How much longer than asked for a document may be before its writer is told.
local LONGER = 1.12

--- How much of the words of a source must stand in the sections that cite it.
local SHARED = 0.2

local function names_in(sources: { Source }): { [string]: boolean }
	return presence.names_of(list.map(sources, function(source): string
		return if source.wanted then source.words else ""
	end))
end

--- A section without its marks, and what it cites.
type Section = { plain: string, cites: { [string]: boolean } }

local function sections_of(made: Document, basis: Basis): { Section }
	return list.map(basis.sections, function(section): Section
		local markdown = made[section] or ""
		local cites: { [string]: boolean } = {}
		for _, id in marked.cites(markdown) do
			cites[id] = true
		end
		return { plain = marked.plain(markdown), cites = cites }
	end)
end

--- Returns the sections that cite a source, one text.
local function citing(sections: { Section }, id: string): string
	local found: { string } = {}
	for _, section in sections do
		if id == "" or section.cites[id] then
			table.insert(found, section.plain)
		end
	end
	return table.concat(found, "\n")
end

--- Returns what is wanted and no section tells that cites it.
function document.missing(made: Document, basis: Basis): { Missing }
	local names = names_in(basis.sources)
	local sections = sections_of(made, basis)
	local stems: { [string]: similarity.Stems } = {}
	local found: { Missing } = {}
	for _, source in basis.sources do
		local place = if source.wanted then citing(sections, source.id) else ""
		if not source.wanted then
			continue
		end
		stems[place] = stems[place] or similarity.stems(place)
		if place == "" or similarity.shared_stems(source.words, stems[place]) < SHARED * #similarity.words(source.words) then
			table.insert(found, { source = source, lacks = {} })
		else
			local lacks = presence.lacking(source.words, `{basis.title}\n{place}`, names)
			if #lacks > 0 then
				table.insert(found, { source = source, lacks = lacks })
			end
		end
	end
	return found
end

--- Returns what of what is missing may be left out as chatter, if its writer says that it is: what has no figure. Each has a name by
--- which the writer names it.
function document.leavable(missing: { Missing }): { [string]: Source }
	local found: { [string]: Source } = {}
	for index, one in missing do
		if #figures.unsaid(one.source.words, {}) == 0 then
			found[`S{index}`] = one.source
		end
	end
	return found
end

--- Returns the name of what may be left out; empty where it may not.
function document.name_of(leavable: { [string]: Source }, wanted: Source): string
	for name, source in leavable do
		if source == wanted then
			return name
		end
	end
	return ""
end

--- Returns all sections as one text.
function document.whole(made: Document, sections: { string }): string
	local parts: { string } = {}
	for _, section in sections do
		table.insert(parts, made[section] or "")
	end
	return table.concat(parts, "\n\n")
end

--- How words say of themselves that they suggest something, in the languages of the flows.
local SUGGESTING = { "suggest", "suggér", "(propos", "*propos", "vorgeschlagen", "vorschl", "sugerid", "suggerit", "voorgesteld" }
--- What stands above a column of suggestions.
local COLUMN = "suggest|suggere|propos|vorschl|vorgeschlag|sugerid|suggerit|voorgesteld"
--- How somebody proposes something in their own name.
local PROPOSING =
	"\\b(i would (set|take|stop|begin|start|put|say|aim|give|allow|plan|keep|call)|i propose|my proposal|let us say|for example|for instance|je (vous )?propose|je (mettrais|fixerais|prendrais|dirais|commencerais|arreterais)|disons|par exemple)\\b|^say [0-9]"
--- Words behind which stands what was, and is no more.
local FORMER = "\\b(was|were|instead of|rather than|not|no longer|before|from|etait|etaient|au lieu de|pas|avant)\\b"

local function suggests(unit: marked.Unit): boolean
	local folded = string.lower(unit.text)
	return list.some(SUGGESTING, function(word): boolean
		return string.find(folded, word, 1, true) ~= nil
	end) or text.search(text.fold(unit.text), PROPOSING) ~= nil
end

--- Whether a line of its own says of a whole section that it is suggested.
local function suggests_all(units: { marked.Unit }): boolean
	return list.some(units, function(unit): boolean
		return unit.is_alone and suggests(unit)
	end)
end

--- Whether a sentence of a section says of the rows of its table that they are suggested.
local function suggests_rows(units: { marked.Unit }): boolean
	return list.some(units, function(unit): boolean
		return not unit.is_row and suggests(unit)
	end)
end

--- Returns the units of a section that are marked as suggested, by themselves or by a sentence that says it of all.
local function suggested(markdown: string, follows: boolean?): { marked.Unit }
	local units = marked.units(markdown)
	local is_all, are_rows = suggests_all(units), follows == true and suggests_rows(units)
	return list.filter(units, function(unit): boolean
		return is_all or (are_rows and unit.is_row) or suggests(unit)
	end)
end

--- Returns the figures that sums of a text come to which hold what is against what was: the difference of two prices.
local function against(markdown: string, all: { figures.Figure }, former: { figures.Figure }): { figures.Figure }
	local known = table.clone(all)
	table.move(former, 1, #former, #known + 1, known)
	return list.filter(figures.worked_out(markdown, known), function(figure): boolean
		return not list.some(former, function(one): boolean
			return one.value == figure.value
		end)
	end)
end

--- Through how many sums a figure may follow from those that were said.
local MOST_STEPS = 4

--- The figures that were said, of each basis: a document is looked at several times.
local said_of: { [Basis]: { figures.Figure } } = setmetatable({}, { __mode = "k" }) :: any

--- Returns the figures that were said, in digits and in words, each once.
local function said_figures(basis: Basis): { figures.Figure }
	local found = said_of[basis]
	if found == nil then
		local said = presence.without_months(basis.said)
		local known: { [string]: boolean } = {}
		found = {}
		for _, some in { figures.of(said), figures.in_words(said), number_words.of(said) } do
			for _, figure in some do
				local name = `{figure.written} {figure.value}`
				if not known[name] then
					known[name] = true
					table.insert(found, figure)
				end
			end
		end
		said_of[basis] = found
	end
	return found
end

--- Returns the figures in columns of tables that are sums of those above them.
local column_sums = memo.of(MOST_READ, function(markdown): { figures.Figure }
	local found: { figures.Figure } = {}
	for _, column in marked.columns(markdown) do
		local own = figures.summed(column)
		table.move(own, 1, #own, #found + 1, found)
	end
	return found
end)

--- Returns all figures that may stand in a document: what was said, what sums in it come to, and days counted from those that were said.
local function allowed(made: Document, basis: Basis): { figures.Figure }
	local all = table.clone(said_figures(basis))
	local known: { [string]: boolean } = {}
	for _, figure in all do
		known[`{figure.written} {figure.value}`] = true
	end
	local function take(found: { figures.Figure })
		for _, figure in found do
			local name = `{figure.written} {figure.value}`
			if not known[name] then
				known[name] = true
				table.insert(all, figure)
			end
		end
	end
	if basis.follows then
		take(figures.multiples(all))
	end
	for _, section in basis.sections do
		take(column_sums(made[section] or ""))
	end
	local former = figures.of(presence.without_months(basis.gone))
	-- One may follow from another, which stands below it, and that from a third.
	for _ = 1, MOST_STEPS do
		local before = #all
		for _, section in basis.sections do
			local markdown = marked.plain(made[section] or "")
			take(figures.worked_out(markdown, all))
			take(against(markdown, all, former))
		end
		if #all == before then
			break
		end
	end
	local told = marked.plain(document.whole(made, basis.sections))
	for _, counted in { dates.counted(told, basis.said), dates.between(told, basis.said) } do
		for _, number in counted do
			table.insert(all, { written = number, value = tonumber(number) :: number })
		end
	end
	return all
end

--- Returns the figures of a unit that nobody said.
local function unsaid(unit: marked.Unit, all: { figures.Figure }, former: { figures.Figure }, is_former: boolean): { string }
	local found = figures.unsaid(presence.without_months(unit.text), all)
	if #found == 0 or not (is_former or text.search(text.fold(unit.text), FORMER) ~= nil) then
		return found
	end
	return list.filter(found, function(written): boolean
		return #figures.unsaid(written, former) > 0
	end)
end

--- Returns the row of a table without what stands in columns of suggestions, which goes to `spans`.
local function without_suggestions(unit: marked.Unit, spans: { string }): string
	local head: { string } = unit.head or {}
	local kept = marked.cells(unit.raw)
	for at, name in head do
		if kept[at] ~= nil and text.search(text.fold(name), COLUMN) ~= nil then
			table.insert(spans, kept[at])
			kept[at] = ""
		end
	end
	return if #spans > 0 then `| {table.concat(kept, " | ")} |` else unit.raw
end

--- Returns what stands in italics in a unit, or in a column of suggestions, and the unit without it.
local function in_italics(unit: marked.Unit): (string, marked.Unit)
	local spans: { string } = {}
	local bold = string.gsub(without_suggestions(unit, spans), "%*%*", "\1")
	local bare = string.gsub(bold, "%*([^%*]+)%*", function(span): string
		table.insert(spans, span)
		return " "
	end)
	if #spans == 0 then
		return "", unit
	end
	local rest = table.clone(unit)
	rest.text = marked.plain((string.gsub(bare, "\1", "**")))
	return marked.plain(table.concat(spans, "\n")), rest
end

--- Calls `seen` with each unit that has figures which nobody said and that is not marked as suggested.
local function each_invented(made: Document, basis: Basis, seen: (section: string, unit: marked.Unit, figures: { string }) -> ())
	local all, former = allowed(made, basis), figures.of(presence.without_months(basis.gone))
	local in_heads = table.clone(all)
	for _, section in basis.sections do
		for _, unit in suggested(made[section] or "", basis.follows) do
			local own = figures.of(unit.text)
			table.move(own, 1, #own, #in_heads + 1, in_heads)
		end
		local all_units: { marked.Unit } = if basis.italics then marked.units(made[section] or "") else {}
		for _, unit in all_units do
			local own = figures.of((in_italics(unit)))
			table.move(own, 1, #own, #in_heads + 1, in_heads)
		end
	end
	for _, section in basis.sections do
		local units = marked.units(made[section] or "")
		local is_own, are_rows = suggests_all(units), basis.follows == true and suggests_rows(units)
		local known = if table.find(basis.heads, section) ~= nil then in_heads else all
		local is_former = table.find(basis.former or {}, section) ~= nil
		for _, unit in units do
			local is_marked = is_own or (are_rows and unit.is_row) or suggests(unit)
			local _, upright = in_italics(unit)
			local found = if is_marked then {} else unsaid(if basis.italics then upright else unit, known, former, is_former)
			if #found > 0 then
				seen(section, unit, found)
			end
		end
	end
end

--- From how much on a figure may come of two that stand anywhere in a document, or in its section: smaller ones come of any by chance.
local IN_DOCUMENT, IN_SECTION = 1000, 100

--- Own proposals of time: a quarter of an hour, an hour.
local function is_short_time(written: string, line: string): boolean
	local value = figures.of(written)[1].value
	local minutes = string.find(line, `%f[%d]{written}[%s%-\194\160]*min`) ~= nil
	return minutes and value <= 60 and value % 5 == 0
end

--- What stands before a day that a memo sets as a limit.
local LIMITS =
	"\\b(by|before|until|than|from|d'ici|avant|jusqu'au|tard|des|a partir)( le| du)?( (mon|tues|wednes|thurs|fri|satur|sun)day| lundi| mardi| mercredi| jeudi| vendredi| samedi| dimanche)? (the )?"

--- Whether a figure is the day of a date until which, or from which, something is to be done.
local function is_limit(written: string, line: string): boolean
	return text.search(text.fold(line), `{LIMITS}{written}(st|nd|rd|th|er)? [a-z]\{3,}`) ~= nil and #dates.days(line) > 0
end

--- A paragraph with so few figures is near each of them, and in a section with more than so many each comes of any two by chance.
local FEW, MOST_ANYWHERE = 6, 200
--- Returns the figures of a section, each value once; none where there are too many for one to follow from another.
local section_figures = memo.of(MOST_READ, function(markdown): { figures.Figure }
	local found: { figures.Figure } = {}
	local values: { [number]: boolean } = {}
	for _, figure in figures.of(marked.plain(markdown)) do
		if not values[figure.value] then
			values[figure.value] = true
			table.insert(found, figure)
		end
	end
	return if #found > MOST_ANYWHERE then {} else found
end)

--- Returns the percentages of a text.
local shares_of = memo.of(MOST_READ, number_words.percentages)

--- Returns the figures of a unit, of those that nobody said, that follow in no step from others.
local function without_step(made: Document, basis: Basis, section: string, unit: marked.Unit, unknown: { string }): { string }
	local said = said_figures(basis)
	local line = marked.plain(unit.line)
	local shares = table.clone(shares_of(basis.said))
	local own = shares_of(unit.text)
	table.move(own, 1, #own, #shares + 1, shares)
	local left = unknown
	-- One may follow from another that follows.
	for _ = 1, 2 do
		local function known(some: { figures.Figure }): { figures.Figure }
			return list.filter(some, function(one): boolean
				return table.find(left, one.written) == nil
			end)
		end
		local near, around = known(figures.of(unit.text)), known(figures.of(line))
		near = if #around <= FEW then around else near
		local anywhere = known(section_figures(made[section]))
		table.move(said, 1, #said, #anywhere + 1, anywhere)
		left = list.filter(left, function(written): boolean
			local is_own = is_short_time(written, line) or is_limit(written, line) or figures.is_time_near(written, anywhere)
			return not is_own and not figures.follows(written, { near = near, around = around, anywhere = anywhere, shares = shares })
		end)
	end
	return left
end

--- Returns the figures of a unit, of those that nobody said, that do not even come of two that it tells itself.
local function without_origin(made: Document, basis: Basis, section: string, unit: marked.Unit, unknown: { string }): { string }
	if basis.follows then
		return without_step(made, basis, section, unit, unknown)
	end
	local function others(markdown: string): { figures.Figure }
		return list.filter(figures.of(marked.plain(markdown)), function(one): boolean
			return table.find(unknown, one.written) == nil
		end)
	end
	return list.filter(unknown, function(written): boolean
		local value = figures.of(written)[1].value
		local is_time = string.find(written, ":", 1, true) ~= nil
		local place = if value >= IN_DOCUMENT or is_time
			then document.whole(made, basis.sections)
			elseif value >= IN_SECTION then made[section]
			else unit.text
		return not figures.comes_of(written, others(place))
	end)
end

--- Figures that nobody said: the sections that have them, and the first statement in which they stand.
type Unknown = { written: { string }, sections: { string }, text: string }

--- Returns the figures of a document that nobody said, each once; where `follows`, those of a statement together.
local function unknown_figures(made: Document, basis: Basis): { Unknown }
	local found: { Unknown } = {}
	each_invented(made, basis, function(section, unit, unknown)
		local own: { string } = if basis.follows then without_origin(made, basis, section, unit, unknown) else unknown
		for _, written in own do
			local known = list.find(found, function(one): boolean
				return table.find(one.written, written) ~= nil
			end)
			local beside = if basis.follows
				then list.find(found, function(one): boolean
					return one.text == unit.text
				end)
				else nil
			if known == nil and beside ~= nil then
				table.insert(beside.written, written)
			elseif known == nil then
				table.insert(found, { written = { written }, sections = { section }, text = unit.text })
			elseif table.find(known.sections, section) == nil then
				table.insert(known.sections, section)
			end
		end
	end)
	return found
end

--- Returns what is wrong with a document, in the words in which its writer is told.
function document.faults(made: Document, basis: Basis): { Fault }
	local found: { Fault } = {}
	for _, one in unknown_figures(made, basis) do
		local which = table.concat(one.written, " and ")
		local verb = if #one.written == 1 then "is" else "are"
		local why = `{which} {verb} in nothing that holds: put its sum beside it, mark it as suggested, or leave it out ("{one.text}")`
		table.insert(found, { section = table.concat(one.sections, ", "), why = why })
	end
	local reckoned: { string } = if basis.follows then basis.sections else {}
	for _, section in reckoned do
		for _, unit in marked.units(made[section] or "") do
			for _, one in figures.wrong_sums(unit.text) do
				table.insert(found, { section = section, why = `{one.written} is not what its sum gives, {one.gives} ("{unit.text}")` })
			end
		end
	end
	for _, section in basis.sections do
		for _, id in marked.cites(made[section] or "") do
			local is_known = list.some(basis.sources, function(source): boolean
				return source.id == id
			end)
			if not is_known then
				table.insert(found, { section = section, why = `[{id}] is nothing that holds` })
			end
		end
	end
	local words = marked.length(document.whole(made, basis.sections))
	if words > LONGER * basis.words then
		local why = `{words} words in all, where {basis.words} are the most: cut what is told twice, and what a reader would skip`
		table.insert(found, { section = "all", why = why })
	end
	return found
end

--- A statement with figures that nobody said and that come of no two others; `stale` are those that were taken back.
export type Unfounded = { section: string, unit: marked.Unit, figures: { string }, stale: { string } }

--- Returns the statements of a document whose figures nobody said, and that are not marked as suggested.
function document.unfounded(made: Document, basis: Basis): { Unfounded }
	local former = figures.of(presence.without_months(basis.gone))
	local found: { Unfounded } = {}
	each_invented(made, basis, function(section, unit, unknown)
		local left = without_origin(made, basis, section, unit, unknown)
		if #left > 0 then
			local stale = list.filter(left, function(written): boolean
				return #figures.unsaid(written, former) == 0
			end)
			table.insert(found, { section = section, unit = unit, figures = left, stale = stale })
		end
	end)
	return found
end

--- The most days of a month.
local MONTH = 31

--- Returns the figures of a unit that nobody said, without the days of months in a sum that counts days from one to another.
local function without_counting(unit: marked.Unit, found: { string }): { string }
	if #dates.days(unit.text) == 0 then
		return found
	end
	local summed = figures.in_sums(unit.text)
	return list.filter(found, function(written): boolean
		local own = figures.of(written)[1]
		return own.value > MONTH or #figures.unsaid(written, summed) > 0
	end)
end

--- Returns a document in which no figure stands as said that nobody said: a statement goes that rests on nothing, and in another the
--- figure is marked as suggested; where italics say that, also in a row of a table that rests on nothing, which may be one of a sum.
--- One that comes of two others stays.
function document.clean(made: Document, basis: Basis): Document
	local edits: { Edit } = {}
	for _, one in document.unfounded(made, basis) do
		local bare = without_counting(one.unit, one.figures)
		if #bare == 0 then
			continue
		end
		local raw: string?
		if #one.unit.cites == 0 and not (basis.italics and one.unit.is_row) then
			raw = nil
		elseif basis.italics then
			raw = marked.in_italics(one.unit.raw, bare)
		else
			raw = marked.behind(one.unit, bare[1], `*({table.concat(bare, ", ")}: {basis.suggested})*`)
		end
		table.insert(edits, { section = one.section, unit = one.unit, raw = raw })
	end
	return document.edited(made, edits)
end

--- What stands in place of a unit of a section; without `raw` it goes.
export type Edit = marked.Edit & { section: string }

--- Returns a document in which units are changed.
function document.edited(made: Document, edits: { Edit }): Document
	local own: { [string]: { marked.Edit } } = {}
	for _, edit in edits do
		own[edit.section] = own[edit.section] or {}
		table.insert(own[edit.section], edit)
	end
	local out = table.clone(made)
	for section, some in own do
		out[section] = marked.edited(made[section], some)
	end
	return out
end

--- Returns what each unit rests on, section by section, with the ids as they are written.
function document.rests(made: Document, basis: Basis): { { section: string, text: string, from: { string } } }
	local found: { { section: string, text: string, from: { string } } } = {}
	for _, section in basis.sections do
		for _, unit in marked.units(made[section] or "") do
			local from = list.filter(unit.cites, function(id): boolean
				return list.some(basis.sources, function(source): boolean
					return source.id == id
				end)
			end)
			table.insert(found, { section = section, text = unit.text, from = from })
		end
	end
	return found
end

--- Returns a document as people read it: without marks, and with nothing in it that could do more than be read.
function document.shown(made: Document, sections: { string }): Document
	local out: Document = {}
	for _, section in sections do
		out[section] = marked.inert(marked.plain(made[section] or ""))
	end
	return out
end

return document
