-- expect: flow-error
require("./files/shared").value = 2
