local _ = 1
