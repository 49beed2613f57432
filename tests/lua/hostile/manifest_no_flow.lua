-- expect: flow-invalid
-- Looks like a flow, but did not come from nietz.flow { … }.
return { name = "hostile", summary = "Hostile", run = function() end }
