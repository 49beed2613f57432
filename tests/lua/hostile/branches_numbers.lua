-- expect: request-invalid
task.all { function() end }
