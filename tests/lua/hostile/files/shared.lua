return { value = 1 }
