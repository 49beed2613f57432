--!strict
--- Who can sit in a council: the personas with the tag `council`, the moderator and the contrarian among them.
--- Pure: personas are files.

local list = require("../common/list")
local personas = require("@nietz/personas")
local similarity = require("../common/similarity")
local text = require("@nietz/text")
local yaml = require("@nietz/yaml")

local members = {}

--- By kind of request: words that tell it, and who is asked then.
local ROUTES: { { kind: string, words: { string }, personas: { string } } } = yaml.load("./routes.yaml")

--- Returns everybody, sorted by slug.
function members.all(): { personas.Persona }
	return personas.list({ tag = "council" })
end

local function tagged(tag: string): personas.Persona
	for _, persona in members.all() do
		if table.find(persona.tags, tag) ~= nil then
			return persona
		end
	end
	error(`no council persona has the tag {tag}`)
end

--- Returns the one who asks and sums up, and takes no side.
function members.moderator(): personas.Persona
	return tagged("moderator")
end

--- Returns the one who takes the other side in every council.
function members.contrarian(): personas.Persona
	return tagged("contrarian")
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

local function plain(name: string): string
	return (string.gsub(text.fold(text.trim(name)), "[’'`]", ""))
end

--- Returns the persona of this name or slug, or nil.
function members.find(name: string): personas.Persona?
	return list.find(members.all(), function(persona): boolean
		return plain(persona.name) == plain(name) or persona.slug == text.slug(name)
	end)
end

--- Returns the name that was most likely meant, or nil.
function members.nearest(name: string): string?
	local names: { [string]: string } = {}
	local folded: { string } = {}
	for _, persona in members.debaters() do
		names[plain(persona.name)] = persona.name
		table.insert(folded, plain(persona.name))
	end
	local near = text.nearest(plain(name), folded)
	if near ~= nil then
		return names[near]
	end
	-- A part of the name, as in "security".
	for _, persona in members.debaters() do
		if #plain(name) >= 3 and string.find(plain(persona.name), plain(name), 1, true) ~= nil then
			return persona.name
		end
	end
	return nil
end

--- Returns what kind of request this is by its words, and who is asked for that: for when no model can say so.
function members.route(request: string): (string, { string })
	local best, most = ROUTES[#ROUTES], 0
	for _, route in ROUTES do
		local count = similarity.shared_words(table.concat(route.words, " "), request)
		if count > most then
			best, most = route, count
		end
	end
	return best.kind, best.personas
end

return members
