-- expect: request-invalid
return yaml.decode(string.rep("- a\n", 3000000))
