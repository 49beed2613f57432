-- expect: request-invalid
-- Nothing could ever be called.
return llm.chat { prompt = "x", tool_choice = "required" }
