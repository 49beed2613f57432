--!strict
--- Text that is shown as it is: a block of Markdown between fences. In a pipe, a message that is one such block is data and comes
--- without its fences.

local fenced = {}

--- Returns a text between fences that are longer than any in it. `info` is what Markdown calls it, such as `diff`.
function fenced.block(text: string, info: string?): string
	local longest = 2
	for run in string.gmatch(text, "`+") do
		longest = math.max(longest, #run)
	end
	local fence = string.rep("`", longest + 1)
	return `{fence}{info or ""}\n{text}\n{fence}`
end

return fenced
