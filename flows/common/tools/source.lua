--!strict
--- What can be read: a worktree, or the files of the workspace. What all tools that read share: their types, and how paths and long texts
--- are treated. Apart from the other tools, because a flow may read files without a repository.

local text = require("@nietz/text")

local source = {}

--- The arguments of a call, which are valid by the tool's `parameters`.
export type Arguments = { [string]: any }

--- The paths of the files that a model has read.
export type Seen = { [string]: boolean }

--- Which part of what a search finds is returned, and what it has found; as `@nietz/files` and `@nietz/git` have it.
export type Part = { skip: number?, most: number?, context: number?, by_file: boolean? }
export type Found = {
	lines: { { path: string, line: number, text: string, beside: boolean? } },
	files: { { path: string, lines: number } }?,
	cut: boolean,
}

--- Where a model reads. A worktree's handle is one.
export type Source = {
	read: (self: any, path: string) -> string,
	find: (self: any, glob: string) -> { paths: { string }, cut: boolean },
	grep: (self: any, pattern: string, glob: string?, part: Part?) -> Found,
}

--- The most that a model is given of a file or a search at once, in bytes.
source.MOST_BYTES = 60000

--- Returns a text, cut where it is too long.
function source.shorten(value: string, most: number?): string
	local limit = most or source.MOST_BYTES
	if #value <= limit then
		return value
	end
	return text.truncate(value, limit) .. `\n[cut here: {#value - limit} bytes are left out; ask for a part of it]`
end

--- Returns a path without `./` in front.
function source.normalize(path: string): string
	return (string.gsub(path, "^%./+", ""))
end

--- Returns a glob that matches just this path.
function source.literal_glob(path: string): string
	return (string.gsub(path, "[%[%]%*%?{}]", "[%0]"))
end

--- Reads a file for a model, and remembers that it has seen it.
function source.read_file(from: Source, path: string, seen: Seen): string
	local content = from:read(path)
	seen[source.normalize(path)] = true
	return content
end

return source
