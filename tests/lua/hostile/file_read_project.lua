-- expect: path-refused
-- The project's own files are not the pack's.
return template.render("../secret.env", {})
