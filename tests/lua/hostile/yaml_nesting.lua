-- expect: document-unreadable
return yaml.decode(string.rep("[", 100000))
