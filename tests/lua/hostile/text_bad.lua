-- expect: request-invalid
return text.width("\xc3\x28")
