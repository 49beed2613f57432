--!strict
--- Texts of somebody's within Markdown.

local markdown = {}

--- Returns a text so that Markdown shows it as it is: `__init__` has its underscores.
function markdown.literal(value: string): string
	return (string.gsub(value, "[\\`*_<~]", "\\%0"))
end

return markdown
