-- expect: request-invalid
return quotes.find { philosohper = string.rep("x", 1000000) }
