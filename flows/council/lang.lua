--!strict
--- The texts of this mode in English, French and what a project adds. They are data (`lang/*.yaml`), in which `{name}` is
--- filled in.

local text = require("@nietz/text")
local translations = require("../common/translations")
local yaml = require("@nietz/yaml")

local lang = {}

local all = translations.of(yaml.load_all("./lang", { like = "en" }))

--- The language of each translator that was given.
local code_of: { [any]: string } = {}

--- Returns the language to use for a wish such as `fr`: English where there is no other.
lang.code = all.code

--- Returns the function that gives the text of a key in a language.
function lang.translator(code: string): translations.Translate
	local t = all.translator(code)
	code_of[t] = code
	return t
end

--- Returns how a persona is called in the language of a translator: its name, where that language has no other.
function lang.called(t: translations.Translate, name: string): string
	local key = string.gsub(text.fold(name), "[^%w]+", "_")
	local called = all.data(code_of[t] or "en", `persona.{key}`)
	return if type(called) == "string" then called else name
end

return lang
