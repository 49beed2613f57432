-- expect: done
-- What a flow does to a handle's methods reaches no other flow, and no other collection.
local notes = documents.collection("notes")
notes.name = "others"
local ok, err = pcall(notes.load, notes, "x")
assert(not ok and err.code == "permission-refused", err)
