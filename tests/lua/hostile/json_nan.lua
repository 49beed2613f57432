-- expect: request-invalid
return json.encode { x = 0 / 0 }
