-- expect: request-invalid
return json.encode { x = "\xff\xfe" }
