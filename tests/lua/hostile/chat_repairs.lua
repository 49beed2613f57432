-- expect: request-invalid
-- A count below zero would never reach its end.
return llm.chat { prompt = "x", schema = { type = "object" }, check = function() return "no" end, repairs = -1 }
