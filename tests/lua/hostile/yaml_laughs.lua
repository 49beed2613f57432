-- expect: document-unreadable
return yaml.load("./files/laughs.yaml")
