-- expect: flow-error
return loadstring("return 1")()
