-- expect: template-invalid
return template.text("{{ '%1000000000d'|format(1) }}")
