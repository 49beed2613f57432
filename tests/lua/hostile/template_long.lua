-- expect: template-invalid
return template.text(string.rep("{{ 1 }}", 500000))
