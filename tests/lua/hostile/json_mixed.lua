-- expect: request-invalid
return json.encode { 1, 2, x = 3 }
