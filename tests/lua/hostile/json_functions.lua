-- expect: request-invalid
return json.encode { x = print }
