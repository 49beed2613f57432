-- expect: template-invalid
local parts = { "{% macro m0() %}xxxxxxxx{% endmacro %}" }
for n = 1, 30 do
  table.insert(parts, `\{% macro m{n}() %}\{\{ m{n - 1}() }}\{\{ m{n - 1}() }}\{% endmacro %}`)
end
return template.text(table.concat(parts) .. "{{ m30()|length }}")
