--!strict
--- What the flow says, in English and French: `lang/*.yaml`.

local texts = require("../common/texts")
local yaml = require("@nietz/yaml")

return texts.new({ en = yaml.load("./lang/en.yaml"), fr = yaml.load("./lang/fr.yaml") })
