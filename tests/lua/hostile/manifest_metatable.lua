-- expect: flow-invalid
-- A manifest whose fields appear only when they are asked for, and then differ.
local nietz = require("@nietz")
return nietz.flow(setmetatable({}, {
  __index = function(_, name)
    return if name == "run" then function() end else "hostile"
  end,
}))
