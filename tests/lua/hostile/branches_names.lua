-- expect: request-invalid
task.all { ["../x"] = function() end }
