//! Where a team's runs and documents are kept: on a server of PostgreSQL, in the schema `nietz` of `postgres/sql`.
//!
//! `address` says which store is meant. `postgres` talks to the server: `connection` keeps one connection, made anew when it is lost,
//! `tls` is how it is encrypted, `failures` says what an error of the server means, `migrations` brings the schema up to date. `runs` and
//! `documents` call the functions of the schema, each of which is one transaction. Nothing here knows what a line says.
//!
//! What a run needs of a store is told by the traits that are met with it: `journal::line_store::LineStore`, `engine::runs::RunStore`,
//! `host::ui::mailbox::AnswerStore`, `host::documents::place::DocumentPlace`.

pub mod address;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
