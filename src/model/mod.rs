//! Plain data that all other modules use: requests, replies, questions, collections, effects. It does no IO.

pub mod brings;
pub mod budget;
pub mod canonical;
pub mod chat;
pub mod collection;
pub mod command;
pub mod difference;
pub mod digest;
pub mod document;
pub mod effect;
pub mod event;
pub mod file;
pub mod git;
pub mod param;
pub mod path_template;
pub mod permission;
pub mod pointer;
pub mod question;
pub mod redact;
pub mod regexes;
pub mod setting;
pub mod text;
