-- expect: flow-error
error("\27[2J\27]0;title\7\xff\u{202e}")
