--!strict
--- Data of a flow that stands one to a file, in a folder to which a project can add files of its own (`yaml.load_all`).

local yaml = require("@nietz/yaml")

local data_files = {}

--- Returns the values of such files, each with its file's name as `slug`: by their `order`, those without one last, by name.
function data_files.ordered(files: { yaml.DataFile }): { any }
	local all: { any } = {}
	for _, file in files do
		local value = table.clone(file.value)
		value.slug = file.name
		table.insert(all, value)
	end
	table.sort(all, function(one: any, other: any): boolean
		local first, second = one.order or math.huge, other.order or math.huge
		return if first == second then one.slug < other.slug else first < second
	end)
	return all
end

return data_files
