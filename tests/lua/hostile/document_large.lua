-- expect: request-invalid
documents.collection("notes"):save { slug = "a", text = string.rep("x", 40000000) }
