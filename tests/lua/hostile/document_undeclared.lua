-- expect: permission-refused
documents.collection("others"):load("a")
