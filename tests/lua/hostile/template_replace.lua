-- expect: template-invalid
return template.text("{{ x|replace('a', x)|replace('a', x)|replace('a', x) }}", { x = string.rep("a", 10000) })
