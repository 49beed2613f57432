--!strict
--- The texts of this mode in English, French and what a project adds. They are data (`lang/*.yaml`), in which `{name}` is
--- filled in.

local translations = require("../common/translations")
local yaml = require("@nietz/yaml")

local lang = {}

export type Say = translations.Translate
export type Vars = translations.Vars

local TEXTS = translations.of(yaml.load_all("./lang", { like = "en" }))

lang.code = TEXTS.code
lang.data = TEXTS.data
lang.translator = TEXTS.translator

--- Returns how long ago something was, in words.
function lang.time_ago(say: Say, seconds: number): string
	local steps = { { unit = "minute", size = 60 }, { unit = "hour", size = 3600 }, { unit = "day", size = 86400 } }
	local unit, size = "moment", 0
	for _, step in steps do
		if seconds >= step.size then
			unit, size = step.unit, step.size
		end
	end
	if size == 0 then
		return say("ago.moment")
	end
	local count = math.floor(seconds / size)
	return say(if count == 1 then `ago.{unit}` else `ago.{unit}s`, { count = count })
end

return lang
