-- expect: request-invalid
-- Thousands of arguments that are the same long text.
print(table.unpack(table.create(7000, string.rep("x", 1000000))))
