-- expect: request-invalid
return ui.choose { id = "a", prompt = "a", options = table.create(1000000, "x") }
