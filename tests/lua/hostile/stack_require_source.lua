-- expect: flow-invalid
-- A file of 100,000 parentheses in one another.
return require("./files/nested")
