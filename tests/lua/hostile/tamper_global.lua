-- expect: flow-error
pcall = function() end
