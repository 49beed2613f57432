--!strict
--- Who can take part in a council: the personas with the tag `council`, among them the moderator and the contrarian.

local data_files = require("../common/data_files")
local list = require("../common/list")
local personas = require("@nietz/personas")
local similarity = require("../common/similarity")
local text = require("@nietz/text")
local yaml = require("@nietz/yaml")

local members = {}

--- By kind of request, which is `slug`: the words that it is recognised by, and who is asked then.
type Route = { slug: string, words: { string }, personas: { string } }
local ROUTES = data_files.ordered(yaml.load_all("./routes", { schema = "./route.schema.json" })) :: { Route }
--- The kind of a request that has no words of any other.
local GENERAL = list.find(ROUTES, function(route): boolean
	return route.slug == "general"
end) :: Route

--- Returns everybody, sorted by slug.
function members.all(): { personas.Persona }
	return personas.list({ tag = "council" })
end

local function member_with_tag(tag: string): personas.Persona
	for _, persona in members.all() do
		if table.find(persona.tags, tag) ~= nil then
			return persona
		end
	end
	error(`no council persona has the tag {tag}`)
end

--- Returns the moderator, who asks and sums up, and takes no side.
function members.moderator(): personas.Persona
	return member_with_tag("moderator")
end

--- Returns the contrarian, who takes the other side in every council.
function members.contrarian(): personas.Persona
	return member_with_tag("contrarian")
end

--- Returns those who debate.
function members.debaters(): { personas.Persona }
	local found: { personas.Persona } = {}
	for _, persona in members.all() do
		if table.find(persona.tags, "moderator") == nil then
			table.insert(found, persona)
		end
	end
	return found
end

local function normalize_name(name: string): string
	return (string.gsub(text.fold(text.trim(name)), "[’'`]", ""))
end

--- Returns the persona of this name or slug, or nil.
function members.find(name: string): personas.Persona?
	return list.find(members.all(), function(persona): boolean
		return normalize_name(persona.name) == normalize_name(name) or persona.slug == text.slug(name)
	end)
end

--- Returns the name that was most likely meant, or nil.
function members.nearest(name: string): string?
	local names: { [string]: string } = {}
	local folded: { string } = {}
	for _, persona in members.debaters() do
		names[normalize_name(persona.name)] = persona.name
		table.insert(folded, normalize_name(persona.name))
	end
	local near = text.nearest(normalize_name(name), folded)
	if near ~= nil then
		return names[near]
	end
	-- A part of the name, as in "security".
	for _, persona in members.debaters() do
		if #normalize_name(name) >= 3 and string.find(normalize_name(persona.name), normalize_name(name), 1, true) ~= nil then
			return persona.name
		end
	end
	return nil
end

--- Returns the kind of a request by its words, and who is asked for that kind: used where no model can classify it.
function members.classify(request: string): (string, { string })
	local best, most = GENERAL, 0
	for _, route in ROUTES do
		local count = similarity.shared_words(table.concat(route.words, " "), request)
		if count > most then
			best, most = route, count
		end
	end
	return best.slug, best.personas
end

return members
