-- expect: done
-- Quotes in texts, comments and data are no attributes.
local quotes = string.rep("'\"", 5000)
local read = xml.decode(`<r a="1"><!-- <x {quotes} --><![CDATA[<x {quotes}]]><b c='it"s>'>don't {quotes}</b></r>`)
assert(read.attributes.a == "1" and read.children[2].attributes.c == 'it"s>')
