-- expect: template-invalid
-- A text that doubles in each of forty steps.
return template.text("{% set x = 'xxxxxxxx' %}" .. string.rep("{% set x = x ~ x %}", 40) .. "{{ x|length }}")
