-- expect: request-invalid
return json.encode { ["\xff"] = 1 }
