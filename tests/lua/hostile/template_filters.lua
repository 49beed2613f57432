-- expect: template-invalid
-- Filters that make much of a long text, one after another.
local chain = string.rep("|list|tojson", 30)
return template.text("{{ (x" .. chain .. ")|length }}", { x = string.rep("\1\"", 50000) })
