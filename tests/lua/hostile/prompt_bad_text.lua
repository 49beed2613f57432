-- expect: request-invalid
return llm.chat { prompt = "\xff" }
