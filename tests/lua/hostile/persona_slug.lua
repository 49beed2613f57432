-- expect: persona-not-found
return personas.get("../../secret")
