--!strict
--- The words of a command, for those who look at a command without a shell.

local command_words = {}

--- Splits a command into words, as a shell splits quoted ones; nil where it needs a shell.
function command_words.split(command: string): { string }?
	local words: { string } = {}
	local word: string?, quote: string? = nil, nil
	for at = 1, #command do
		local letter = string.sub(command, at, at)
		if quote ~= nil then
			if letter == quote then
				quote = nil
			else
				word = (word or "") .. letter
			end
		elseif letter == "'" or letter == '"' then
			quote, word = letter, word or ""
		elseif letter == " " or letter == "\t" then
			if word ~= nil then
				table.insert(words, word)
				word = nil
			end
		elseif string.find("|&;<>()$`\\*?[#~\n", letter, 1, true) ~= nil then
			return nil
		else
			word = (word or "") .. letter
		end
	end
	if quote ~= nil then
		return nil
	end
	if word ~= nil then
		table.insert(words, word)
	end
	return if #words > 0 then words else nil
end

return command_words
