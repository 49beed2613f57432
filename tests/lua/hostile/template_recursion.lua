-- expect: template-invalid
return template.text("{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}")
