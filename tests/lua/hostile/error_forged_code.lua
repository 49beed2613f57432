-- expect: interrupted
-- A code of the host's may be raised by a flow too: it ends the run, and nothing more.
error { code = "interrupted", message = "x" }
