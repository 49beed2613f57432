-- expect: template-invalid
return template.text("{% for a in range(10000) %}{% for b in range(10000) %}{% endfor %}{% endfor %}")
