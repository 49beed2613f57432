-- expect: request-invalid
return "\xff"
