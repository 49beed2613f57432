-- expect: template-invalid
return template.text("{% set x = 'xxxxxxxx' %}" .. string.rep("{% set x = x + x %}", 40) .. "{{ x|length }}")
