-- expect: template-invalid
return template.text(
  "{% set x %}xxxxxxxx{% endset %}" .. string.rep("{% set x %}{{ x }}{{ x }}{% endset %}", 40) .. "{{ x|length }}"
)
