--!strict
--- Paths in what commands write. They name places of one session; models and memories need what holds in every one.

local local_paths = {}

--- What a folder's name can go on with: `/work/a` is not a part of `/work/ab`.
local GOES_ON = "^[%w_%-%.]"

local function without_folder(text: string, folder: string): string
	local parts: { string } = {}
	local from: number = 1
	while true do
		local at, ends = string.find(text, folder, from, true)
		if at == nil or ends == nil then
			break
		end
		local behind = string.sub(text, ends + 1, ends + 1)
		table.insert(parts, string.sub(text, from, at - 1))
		if behind == "/" then
			ends += 1
		else
			table.insert(parts, if string.find(behind, GOES_ON) then folder else ".")
		end
		from = ends + 1
	end
	table.insert(parts, string.sub(text, from))
	return table.concat(parts)
end

--- Returns a text in which paths into these folders are relative to them.
function local_paths.without(text: string, folders: { string }): string
	for _, folder in folders do
		if #folder > 1 then
			text = without_folder(text, folder)
		end
	end
	return text
end

return local_paths
