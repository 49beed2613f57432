-- expect: template-invalid
return template.text("{% set x = 'x' * 100000 %}" .. string.rep("{% set x = x * 100000 %}", 4) .. "{{ x|length }}")
