-- expect: persona-not-found
return personas.get(string.rep("x", 1000000))
