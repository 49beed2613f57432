//! x
#![allow(dead_code)]
mod editor;
mod keys;
mod markdown;
mod prompt;
mod style;
mod tty;
mod wrap;
