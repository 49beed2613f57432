-- expect: request-invalid
return os.time { year = 2026, month = 1, day = 1e18 }
