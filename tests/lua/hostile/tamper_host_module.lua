-- expect: flow-error
ui.say = print
