-- expect: template-invalid
return template.text("{{ x|indent(1000000) }}", { x = string.rep("a\n", 10000) })
