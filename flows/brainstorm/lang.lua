--!strict
--- What the flow says, in English and French. The texts are data (`lang/*.yaml`), with `{name}` for what is filled in.

local yaml = require("@nietz/yaml")

local lang = {}

export type Vars = { [string]: string | number }
export type Say = (key: string, vars: Vars?) -> string

local TEXTS: { [string]: any } = {
	en = yaml.load("./lang/en.yaml"),
	fr = yaml.load("./lang/fr.yaml"),
}

--- Returns the language to use for a wish such as `fr`: English where we have no other.
function lang.code(wish: string): string
	return if TEXTS[wish] ~= nil then wish else "en"
end

--- Returns the value under a key such as `axes.clarity`, which may be a list or a table, or nil.
function lang.data(code: string, key: string): any
	local value: any = TEXTS[code]
	for _, part in string.split(key, ".") do
		if type(value) ~= "table" then
			return nil
		end
		value = value[part]
	end
	return value
end

--- Returns the function that says things in this language. A key that does not exist is our error: it is raised.
function lang.of(code: string): Say
	return function(key: string, vars: Vars?): string
		local value = lang.data(code, key)
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
end

--- Returns how long ago something was, in words.
function lang.ago(say: Say, seconds: number): string
	local steps = { { "minute", 60 }, { "hour", 3600 }, { "day", 86400 } }
	local unit, size = "moment", 0
	for _, step in steps do
		if seconds >= (step[2] :: any) then
			unit, size = step[1] :: any, step[2] :: any
		end
	end
	if size == 0 then
		return say("ago.moment")
	end
	local count = math.floor(seconds / size)
	return say(if count == 1 then `ago.{unit}` else `ago.{unit}s`, { count = count })
end

return lang
