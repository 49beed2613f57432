-- expect: flow-invalid
-- Compiling a file of megabytes takes seconds and gigabytes.
return require("./files/long")
