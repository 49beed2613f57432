-- expect: request-invalid
-- A short letter for a long text, many times.
return #clock.format(0, string.rep("%c", 5000000))
