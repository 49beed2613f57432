--!strict
--- The texts of a flow in several languages: one table of texts for each language, in which `{name}` is filled in.

local nietz = require("@nietz")

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

--- Returns the texts of a flow, from one table for each language.
function translations.new(tables: { [string]: nietz.Values }): Translations
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
