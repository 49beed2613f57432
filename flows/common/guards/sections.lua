--!strict
--- The parts of a configuration file that say how tests run, by the names of their keys.

local json = require("@nietz/json")
local text = require("@nietz/text")

local sections = {}

--- One kind of file: where it is told of (`protected.yaml`), and which of its keys are guarded.
export type Section = { file: string, form: string, keys: string, guards_new: boolean? }

--- Returns the value of each guarded key of a file in sections: `[heading]`, `key = value`, and lines that go on.
local function of_lines(content: string, keys: string): { [string]: string }
	local found: { [string]: string } = {}
	local heading, key, within = "", nil :: string?, false
	for _, line in text.lines(content) do
		local plain = text.trim(line)
		if not within then
			local opened = string.match(plain, "^%[+%s*(.-)%s*%]+%s*$") or string.match(plain, "^%[+%s*(.-)%s*%]+%s*#.*$")
			local name, value = string.match(plain, "^([%w_%-%.\"':%*]+)%s*[=:]%s*(.*)$")
			if plain == "" or string.find(plain, "^[#;]") then
				continue
			elseif opened ~= nil and string.find(line, "^%s*%[") and (key == nil or string.find(line, "^%[")) then
				heading, key = string.gsub(opened, "[\"' ]", ""), nil
				continue
			elseif name ~= nil and string.find(line, "^%s*%S") then
				local whole = if heading == "" then name else `{heading}.{name}`
				key = string.gsub(whole, "[\"' ]", "")
				plain = value or ""
			end
		end
		local _, quotes = string.gsub(plain, '"""', "")
		if quotes % 2 == 1 then
			within = not within
		end
		if key ~= nil and text.search(key, keys) ~= nil then
			found[key] = (found[key] or "") .. "\n" .. plain
		end
	end
	return found
end

--- Adds the scripts that a command names, and those that they name.
local function add_scripts(scripts: { [string]: any }, command: string, found: { [string]: string })
	for name, script in scripts do
		local is_test = string.find(name, "^test") ~= nil and string.find(command, "test", 1, true) ~= nil
		local plain = string.gsub(name, "%p", "%%%0")
		local is_named = string.find(` {command} `, `[%s"']{plain}[%s"';&|]`) ~= nil
		if (is_test or is_named) and found[`scripts.{name}`] == nil and type(script) == "string" then
			found[`scripts.{name}`] = script
			for _, around in { "pre", "post" } do
				local other = scripts[around .. name]
				found[`scripts.{around}{name}`] = if type(other) == "string" then other else ""
			end
			add_scripts(scripts, script, found)
		end
	end
end

--- Returns the guarded members of a `package.json`: settings of runners, and the scripts that the commands start.
local function of_package(content: string, keys: string, commands: { string }): { [string]: string }
	local found: { [string]: string } = {}
	local ok, value = pcall(json.decode, content)
	if not ok or type(value) ~= "table" then
		return { ["the file"] = content }
	end
	for name, member in value do
		if text.search(tostring(name), keys) ~= nil then
			found[name] = json.encode(member)
		end
	end
	if type(value.scripts) == "table" then
		for _, command in commands do
			add_scripts(value.scripts, command, found)
		end
	end
	return found
end

--- Returns the lines of a file that have a guarded word.
local function of_words(content: string, words: string): { [string]: string }
	local found: { [string]: string } = {}
	for _, line in text.lines(content) do
		local has = if string.find(line, "^%s*#") == nil then text.search(line, words) else nil
		if has ~= nil then
			found[has.text] = (found[has.text] or "") .. "\n" .. text.trim(line)
		end
	end
	return found
end

local function read(section: Section, content: string, commands: { string }): { [string]: string }
	if content == "" then
		return {}
	elseif section.form == "lines" then
		return of_words(content, section.keys)
	elseif section.form == "package" then
		return of_package(content, section.keys, commands)
	end
	return of_lines(content, section.keys)
end

--- Returns the names of the guarded keys that differ between two versions of a file, sorted.
function sections.differences(section: Section, before: string, after: string, commands: { string }): { string }
	local old, new = read(section, before, commands), read(section, after, commands)
	local names: { string } = {}
	for name, value in old do
		if new[name] ~= value then
			table.insert(names, name)
		end
	end
	for name in new do
		if old[name] == nil and new[name] ~= "" then
			table.insert(names, name)
		end
	end
	table.sort(names)
	return names
end

return sections
