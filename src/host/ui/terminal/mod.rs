//! x
#![allow(dead_code)]
mod keys;
mod markdown;
mod style;
mod tty;
mod wrap;
