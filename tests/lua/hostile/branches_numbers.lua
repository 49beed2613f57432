-- expect: done
task.all { function() end }
