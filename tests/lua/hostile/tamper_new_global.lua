-- expect: flow-error
shared_between_files = 1
