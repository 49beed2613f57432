-- expect: path-refused
documents.collection("notes"):path(string.rep("a", 1000000))
