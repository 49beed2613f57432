--!strict
--- Keeps what was worked out of the last texts: one document is looked at for one thing after another. Pure.

local memo = {}

--- Returns a function that gives the same and keeps it of so many texts. What it gives is read, not changed.
function memo.of<T>(most: number, work: (value: string) -> T): (value: string) -> T
	local kept: { [string]: T } = {}
	local count = 0
	return function(value: string): T
		local found = kept[value]
		if found == nil then
			if count >= most then
				kept, count = {}, 0
			end
			found = work(value)
			kept[value], count = found, count + 1
		end
		return found
	end
end

return memo
