-- expect: path-refused
documents.collection("notes"):path("a\0b")
