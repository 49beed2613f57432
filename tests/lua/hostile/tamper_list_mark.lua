-- expect: flow-error
setmetatable(json.array {}, {})
