-- expect: request-invalid
return text.fold(string.rep("É", 20000000))
