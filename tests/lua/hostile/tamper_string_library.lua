-- expect: flow-error
string.rep = nil
