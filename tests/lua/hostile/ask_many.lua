-- expect: request-invalid
return ui.choose { id = "a", prompt = "a", options = table.create(500000, string.rep("x", 200)) }
