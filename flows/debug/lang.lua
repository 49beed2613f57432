--!strict
--- The texts of this mode in English and French: `lang/*.yaml`.

local translations = require("../common/translations")
local yaml = require("@nietz/yaml")

return translations.new({ en = yaml.load("./lang/en.yaml"), fr = yaml.load("./lang/fr.yaml") })
