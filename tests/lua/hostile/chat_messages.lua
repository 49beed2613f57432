-- expect: request-invalid or flow-limit
return llm.chat { messages = table.create(400000, { role = "user", content = "x" }) }
