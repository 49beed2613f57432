-- expect: module-not-found
return require("../../nietz-test-outside")
