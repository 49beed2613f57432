#![doc = include_str!("ARCHITECTURE.md")]

pub mod error;
pub mod cpu;
pub(crate) mod disk;
pub mod model;
pub mod schema;
pub mod template;
pub mod assets;
pub mod pack;
pub mod journal;
pub mod host;
pub mod engine;
pub mod lua;
pub(crate) mod report;
pub(crate) mod view;
pub mod run;
pub mod cli;
