local ui = require("@nietz/ui")
ui.say("while a module is loaded")
return {}
