-- expect: path-refused
-- A file of the project that is no part of the pack.
return require("../secret")
