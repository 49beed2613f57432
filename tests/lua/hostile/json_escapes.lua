-- expect: request-invalid
-- Each byte becomes six.
return #json.encode(string.rep("\1", 20000000))
