--!strict
--- Times, tokens, money and counts as people read them. Pure.

local amounts = {}

--- Returns a count with its noun, in the plural where there is not one.
function amounts.count(count: number, noun: string): string
	return `{count} {noun}{if count == 1 then "" else "s"}`
end

--- Returns a time in its two largest units.
function amounts.duration(seconds: number): string
	local whole = math.max(0, math.floor(seconds))
	if whole < 60 then
		return `{whole} s`
	elseif whole < 3600 then
		return `{whole // 60} min {whole % 60} s`
	end
	return `{whole // 3600} h {whole // 60 % 60} min`
end

--- Returns a number of tokens, shortened where it is long.
function amounts.tokens(tokens: number): string
	if tokens < 10000 then
		return tostring(tokens)
	elseif tokens < 1000000 then
		return string.format("%.1fk", tokens / 1000)
	end
	return string.format("%.2fM", tokens / 1000000)
end

--- Returns US dollars, or that a price is not known.
function amounts.cost(cost: number?): string
	if cost == nil then
		return "?"
	elseif cost == 0 then
		return "free"
	end
	return string.format(if cost < 0.1 then "$%.4f" else "$%.2f", cost)
end

--- Returns tokens with what they cost, where that is known and something was used.
function amounts.used(tokens: number, cost: number?): string
	return `{amounts.tokens(tokens)} tokens` .. (if cost ~= nil and tokens > 0 then `, {amounts.cost(cost)}` else "")
end

return amounts
