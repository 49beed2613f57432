-- expect: template-invalid
-- A persona that is none, with a body that doubles.
return personas.render({ slug = "x", body = "{% set x = 'xxxxxxxx' %}" .. string.rep("{% set x = x ~ x %}", 40) })
