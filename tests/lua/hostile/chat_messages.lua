-- expect: request-invalid
return llm.chat { messages = table.create(400000, { role = "user", content = "x" }) }
