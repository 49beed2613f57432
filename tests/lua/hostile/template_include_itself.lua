-- expect: template-invalid
return template.render("./files/include_itself.md", {})
