-- expect: document-unreadable
return json.decode(string.rep("[", 100000))
