-- expect: path-refused
return yaml.load("../../../etc/passwd")
