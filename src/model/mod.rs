//! Plain data that all other modules use: requests, replies, questions, collections, effects. It does no IO.

pub mod attachment;
pub(crate) mod brings;
pub mod budget;
pub(crate) mod canonical;
pub mod chat;
pub mod choice;
pub mod collection;
pub mod command;
pub(crate) mod difference;
pub mod digest;
pub mod document;
pub mod effect;
pub mod event;
pub mod git;
pub mod hunks;
pub mod media;
pub(crate) mod param;
pub mod path_template;
pub mod permission;
pub(crate) mod pointer;
pub mod question;
pub mod redact;
pub mod regexes;
pub(crate) mod setting;
pub(crate) mod text;
pub(crate) mod typed;
