--!strict
--- The texts of a flow in several languages: one table of texts for each language, in which `{name}` is filled in.

local nietz = require("@nietz")
local yaml = require("@nietz/yaml")

local translations = {}

export type Vars = { [string]: string | number }
export type Translate = ((key: string) -> string) & ((key: string, vars: Vars) -> string)
export type Translations = {
	--- Returns the language to use for a wish such as `fr`: English where there is no other.
	code: (wish: string) -> string,
	--- Returns the value under a key such as `axes.clarity`, which may be a list or a table, or nil.
	data: (code: string, key: string) -> any,
	--- Returns the function that gives the text of a key in a language. A key that does not exist is an error of the flow: raised.
	translator: (code: string) -> Translate,
}

--- How many of the texts that a language lacks are told.
local MOST_TOLD = 5

--- Returns what is there in this language, or in English.
function translations.pick(texts: { [string]: string }, code: string): string
	return texts[code] or texts.en
end

--- Returns a text that counts: `KEY.one` or `KEY.other`, with `{count}` in it. `zero` of the language says which of them nothing is.
function translations.counted(t: Translate, key: string, count: number, vars: Vars?): string
	local form = if count == 1 then "one" elseif count == 0 then t("zero") else "other"
	local all: Vars = table.clone(vars or {})
	all.count = count
	return t(`{key}.{form}`, all)
end

--- Returns the texts of a flow from the files of a folder, `yaml.load_all("./lang", { like = "en" })`: one for each language,
--- with all texts that English has. A project adds a language by adding a file.
function translations.of(files: { yaml.DataFile }): Translations
	local tables: { [string]: nietz.Values } = {}
	local incomplete: { [string]: yaml.DataFile } = {}
	for _, file in files do
		tables[file.name] = file.value
		if #file.lacks > 0 then
			incomplete[file.name] = file
		end
	end
	return translations.new(tables, incomplete)
end

--- Returns the texts of a flow, from one table for each language. One that is incomplete is refused when it is used.
function translations.new(tables: { [string]: nietz.Values }, incomplete: { [string]: yaml.DataFile }?): Translations
	local function data(code: string, key: string): any
		local value: any = tables[code]
		for _, part in string.split(key, ".") do
			if type(value) ~= "table" then
				return nil
			end
			value = value[part]
		end
		return value
	end
	return {
		code = function(wish: string): string
			return if tables[wish] ~= nil then wish else "en"
		end,
		data = data,
		translator = function(code: string): Translate
			local file = if incomplete then incomplete[code] else nil
			if file ~= nil then
				local told = table.concat(file.lacks, ", ", 1, math.min(#file.lacks, MOST_TOLD))
				local rest = if #file.lacks > MOST_TOLD then ` and {#file.lacks - MOST_TOLD} more` else ""
				nietz.fail(`{file.file} lacks {told}{rest}`, "add what en.yaml has, or use another language: `nietz check` lists all of it")
			end
			return function(key: string, vars: Vars?): string
				local value = data(code, key)
				if type(value) ~= "string" then
					error(`no text "{key}" in lang/{code}.yaml`, 2)
				end
				local filled = string.gsub(value, "{([%w_]+)}", function(name: string): string
					local given = if vars then vars[name] else nil
					if given == nil then
						error(`the text "{key}" needs "{name}"`, 4)
					end
					return tostring(given)
				end)
				return filled
			end
		end,
	}
end

return translations
