//! The promise: the doctor says which model would be asked, where, with which key, and over which network, shows no secret, and
//! asks nobody unless it is told to.
