-- expect: template-invalid
return template.text("{{ range(9999)|join(x) }}", { x = string.rep("a", 10000) })
