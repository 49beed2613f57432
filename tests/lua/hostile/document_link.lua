-- expect: path-refused
-- A folder of the workspace that leads out of it.
documents.collection("notes"):save { slug = "a" }
local linked = documents.collection("linked")
linked:save { slug = "b" }
