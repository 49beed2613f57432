-- expect: request-invalid
-- Each letter of the text meets thousands of states.
local letters, x = {}, 12345
for i = 1, 60000 do
  x = (x * 1103515245 + 12345) % 2147483648
  letters[i] = if x % 65536 > 32768 then "a" else "b"
end
return text.search(string.rep(table.concat(letters), 60), "[ab]*a[ab]{9000}[cd]")
