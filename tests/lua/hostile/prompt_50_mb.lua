-- expect: request-invalid
return llm.chat { prompt = string.rep("x", 50000000) }
