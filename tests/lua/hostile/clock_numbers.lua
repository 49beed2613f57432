-- expect: done
for _, n in { 0 / 0, math.huge, -math.huge, 1e300, -1e300, 2 ^ 63 } do
  pcall(clock.format, n)
  pcall(os.date, "%c", n)
  for _, field in { "year", "month", "day", "hour", "min", "sec" } do
    pcall(os.time, { [field] = n })
  end
  pcall(ui.progress, "x", n, n)
  pcall(random.integer, n, n)
  pcall(task.limit, n, function() end)
  pcall(text.truncate, "x", n)
  pcall(string.find, "x", "x", n, true)
  pcall(table.move, {}, n, n, n)
  pcall(llm.chat, { prompt = "x", max_tokens = n, temperature = n, rounds = n, repairs = n })
end
