-- expect: template-invalid
return template.text("{{ 'a\nb'|indent(9007199254740991) }}")
