-- expect: request-invalid
return json.decode(string.rep(" ", 20000000) .. "1")
