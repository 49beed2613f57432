-- expect: template-invalid
-- Lists of lists, made long by filters.
return template.text(
  "{% set x = range(9999)|list %}" .. string.rep("{% set x = (x + x)|list %}", 30) .. "{{ x|length }}"
)
