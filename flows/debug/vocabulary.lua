--!strict
--- The tags for behaviours in a response, and the dimensions that they count for: `tags.yaml`.

local json = require("@nietz/json")
local list = require("../common/list")
local yaml = require("@nietz/yaml")

local vocabulary = {}

export type Tag = {
	tag: string,
	dimension: string,
	sign: number,
	means: string,
	--- What was seen, as the score card says it, by language.
	label: { [string]: string }?,
	--- Whether it leads to a harder voice.
	escalates: boolean?,
	--- What the habit is called in the profile, by language.
	spot: { [string]: string }?,
}
export type Dimension = { name: string, label: { [string]: string } }

local FILE = yaml.load("./tags.yaml")

vocabulary.TAGS = FILE.tags :: { Tag }
vocabulary.DIMENSIONS = FILE.dimensions :: { Dimension }

local BY_NAME: { [string]: Tag } = {}
for _, tag in vocabulary.TAGS do
	BY_NAME[tag.tag] = tag
end

--- Returns the tag of this name, or nil: files from elsewhere may have other tags.
function vocabulary.find(name: string): Tag?
	return BY_NAME[name]
end

--- Returns the names of all tags.
function vocabulary.names(): { string }
	local names: { string } = json.array({} :: { string })
	for _, tag in vocabulary.TAGS do
		table.insert(names, tag.tag)
	end
	return names
end

--- Whether a dimension of this name exists.
function vocabulary.is_dimension(name: string): boolean
	return list.some(vocabulary.DIMENSIONS, function(dimension): boolean
		return dimension.name == name
	end)
end

return vocabulary
