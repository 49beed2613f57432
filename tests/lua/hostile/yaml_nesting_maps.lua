-- expect: document-unreadable
return yaml.decode(string.rep("{a: ", 100000))
