--!strict
--- What a small mind gets in place of tools, which it calls without an end: the code that the failures are about, and a change to
--- write down.

local git = require("@nietz/git")
local list = require("../common/list")
local llm = require("@nietz/llm")
local results = require("../common/memory/results")
local source = require("../common/tools/source")
local text = require("@nietz/text")

local small = {}

--- A file as a prompt has it.
export type Shown = { path: string, text: string }
--- A place in a file and what is to stand there.
export type Edit = { path: string, old: string, new: string }

--- How much code is shown, in bytes: a small mind reads slowly.
local MOST_CODE = 6000
--- Names of files that are shorter stand in too many texts.
local SHORTEST_NAME = 3

--- Parts of an analysis that may be left out, and that a small mind fills with what it was just told.
small.LEFT_OUT = { "security", "issues", "prevention" }

small.CHANGE = {
	type = "object",
	required = { "edits" },
	properties = {
		edits = {
			type = "array",
			minItems = 1,
			maxItems = 5,
			items = {
				type = "object",
				required = { "path", "old", "new" },
				properties = {
					path = { type = "string", minLength = 1, maxLength = 300 },
					old = { type = "string", minLength = 1, maxLength = 2000 },
					new = { type = "string", maxLength = 2000 },
				},
			},
		},
	},
} :: llm.Schema

--- Returns the text of a file of the worktree, or nil where it is no text that can be read.
local function read(tree: git.Handle, path: string): string?
	local ok, content = pcall(tree.read, tree, path)
	return if ok then content else nil
end

--- Returns the code that failures are about: the files that they name, then those whose names stand in these. Empty where there
--- is none, or where already the first does not fit.
function small.code(tree: git.Handle, latest: results.Results): { Shown }
	local all = tree:find("**").paths
	local shown: { Shown } = {}
	local size = 0
	local function show(path: string?)
		local known = list.some(shown, function(file)
			return file.path == path
		end)
		local content = if path ~= nil and not known and table.find(all, path) ~= nil then read(tree, path) else nil
		if content ~= nil and size + #content <= MOST_CODE then
			size += #content
			table.insert(shown, { path = path :: string, text = content })
		end
	end
	for _, failure in latest.failures do
		show(if failure.source_location ~= nil then failure.source_location.file else nil)
		show(failure.test_file)
	end
	for _, file in table.clone(shown) do
		for _, path in all do
			local name = string.match(path, "([^/]+)%.[%w]+$")
			if
				name ~= nil
				and #name >= SHORTEST_NAME
				and string.find(file.text, `%f[%w_]{string.gsub(name, "%p", "%%%0")}%f[^%w_]`) ~= nil
			then
				show(path)
			end
		end
	end
	return shown
end

--- Returns the lines of a change that differ, without those before and after them that are the same on both sides: a small mind
--- leaves out lines around a place that it knows.
local function differing(edit: Edit): (string, string)
	local old, new = text.lines(edit.old), text.lines(edit.new)
	while #old > 0 and #new > 0 and old[1] == new[1] do
		table.remove(old, 1)
		table.remove(new, 1)
	end
	while #old > 0 and #new > 0 and old[#old] == new[#new] do
		table.remove(old)
		table.remove(new)
	end
	return table.concat(old, "\n"), table.concat(new, "\n")
end

--- Where a change goes in a text: the bytes that are replaced, and by what; or why that is not known.
type Place = { from: number, to: number, new: string }
local function place_of(content: string, edit: Edit): (Place?, string?)
	local short_old, short_new = differing(edit)
	for _, way in { { edit.old, edit.new }, { short_old, short_new } } do
		local old, new = way[1], way[2]
		local from, to = string.find(content, old, 1, true)
		if old ~= "" and from ~= nil and string.find(content, old, (to :: number) + 1, true) ~= nil then
			return nil, `old stands in {edit.path} more than once: give the lines around it, too`
		elseif old ~= "" and from ~= nil then
			return { from = from, to = to :: number, new = new }, nil
		end
	end
	return nil, `old must stand in {edit.path} letter by letter, and this does not: {edit.old}`
end

--- Returns why a change cannot be made as it stands, or nil.
function small.why_not(tree: git.Handle, edits: { Edit }): string?
	for _, edit in edits do
		local content = if #tree:find(source.literal_glob(edit.path)).paths == 1 then read(tree, edit.path) else nil
		if content == nil then
			return `path must name one of the files above, and {edit.path} does not`
		elseif edit.old == edit.new then
			return "old and new are the same, so nothing would change"
		end
		local _, why = place_of(content, edit)
		if why ~= nil then
			return why
		end
	end
	return nil
end

--- Makes a change that `why_not` has nothing against.
function small.make(tree: git.Handle, edits: { Edit })
	for _, edit in edits do
		local content = tree:read(edit.path)
		local place = place_of(content, edit)
		if place ~= nil then
			tree:write(edit.path, string.sub(content, 1, place.from - 1) .. place.new .. string.sub(content, place.to + 1))
		end
	end
end

return small
