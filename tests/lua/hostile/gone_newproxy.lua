-- expect: flow-error
return newproxy(true)
