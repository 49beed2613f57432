--!strict
--- Builds the JSON Schemas of what models are asked for: every member of an object is required, and no other is allowed.

local llm = require("@nietz/llm")

local shape = {}

export type Shape = llm.Schema

--- Returns an object. A model writes its members in the order of `names`, so what it should think of first comes first.
function shape.object(names: { string }, members: { [string]: Shape }): Shape
	return { type = "object", additionalProperties = false, required = names, properties = members }
end

--- Returns an object whose members are written in alphabetical order.
function shape.record(members: { [string]: Shape }): Shape
	local names: { string } = {}
	for name in members do
		table.insert(names, name)
	end
	table.sort(names)
	return shape.object(names, members)
end

--- Returns an object with one list of records.
function shape.list_of(name: string, least: number, most: number, members: { [string]: Shape }): Shape
	return shape.object({ name }, { [name] = shape.list(shape.record(members), least, most) })
end

--- Returns a list with at least and at most so many items.
function shape.list(items: Shape, least: number?, most: number?): Shape
	return { type = "array", minItems = least, maxItems = most, items = items }
end

--- Returns a text with at least and at most so many letters.
function shape.text(least: number, most: number?): Shape
	return { type = "string", minLength = least, maxLength = most }
end

--- Returns a whole number between two, both included.
function shape.integer(least: number, most: number): Shape
	return { type = "integer", minimum = least, maximum = most }
end

return shape
