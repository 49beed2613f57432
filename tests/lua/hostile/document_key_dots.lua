-- expect: path-refused
documents.collection("notes"):save { slug = ".." }
