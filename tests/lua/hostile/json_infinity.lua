-- expect: request-invalid
return json.encode { x = -math.huge }
