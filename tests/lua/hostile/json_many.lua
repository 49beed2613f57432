-- expect: request-invalid
-- Small in text, large in memory.
return #json.decode("[" .. string.rep("{\"a\":{}},", 2000000) .. "1]")
