--!strict
--- What a small mind gets in place of tools, which it calls without an end: the code that the failures are about, and a change to
--- write down.

local git = require("@nietz/git")
local list = require("../common/list")
local llm = require("@nietz/llm")
local results = require("../common/memory/results")

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

--- Returns why a change cannot be made as it stands, or nil.
function small.why_not(tree: git.Handle, edits: { Edit }): string?
	for _, edit in edits do
		local content = if #tree:find((string.gsub(edit.path, "[%[%]%*%?{}]", "[%0]"))).paths == 1 then read(tree, edit.path) else nil
		if content == nil then
			return `path must name one of the files above, and {edit.path} does not`
		end
		local from, to = string.find(content, edit.old, 1, true)
		if from == nil then
			return `old must stand in {edit.path} letter by letter, and this does not: {edit.old}`
		elseif string.find(content, edit.old, (to :: number) + 1, true) ~= nil then
			return `old stands in {edit.path} more than once: give the lines around it, too`
		elseif edit.old == edit.new then
			return "old and new are the same, so nothing would change"
		end
	end
	return nil
end

--- Makes a change that `why_not` has nothing against.
function small.make(tree: git.Handle, edits: { Edit })
	for _, edit in edits do
		local content = tree:read(edit.path)
		local from, to = string.find(content, edit.old, 1, true)
		if from ~= nil then
			tree:write(edit.path, string.sub(content, 1, from - 1) .. edit.new .. string.sub(content, (to :: number) + 1))
		end
	end
end

return small
