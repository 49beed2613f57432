--!strict
--- The texts of this mode in English, French and what a project adds. They are data (`lang/*.yaml`), in which `{name}` is
--- filled in.

local translations = require("../common/translations")
local yaml = require("@nietz/yaml")

return translations.of(yaml.load_all("./lang", { like = "en" }))
