-- expect: module-not-found
return require("/etc/passwd")
