--!strict
--- Functions over lists that Luau's `table` lacks.

local list = {}

--- Returns what `give` makes of each item.
function list.map<T, U>(items: { T }, give: (item: T) -> U): { U }
	local found: { U } = {}
	for _, item in items do
		table.insert(found, give(item))
	end
	return found
end

--- Returns the names in a table, sorted.
function list.keys<T>(from: { [string]: T }): { string }
	local found: { string } = {}
	for name in from do
		table.insert(found, name)
	end
	table.sort(found)
	return found
end

--- Returns the items that are wanted.
function list.filter<T>(items: { T }, is: (item: T) -> boolean): { T }
	local found = {}
	for _, item in items do
		if is(item) then
			table.insert(found, item)
		end
	end
	return found
end

--- Returns the first item for which `is` holds, or nil.
function list.find<T>(items: { T }, is: (item: T) -> boolean): T?
	for _, item in items do
		if is(item) then
			return item
		end
	end
	return nil
end

--- Returns whether `is` holds for any item.
function list.some<T>(items: { T }, is: (item: T) -> boolean): boolean
	return list.find(items, is) ~= nil
end

return list
