-- expect: path-refused
documents.collection("notes"):load("../../etc/passwd")
