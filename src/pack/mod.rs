//! Where flows come from: a folder on disk or what is bundled, and how a name is resolved to one. And packs of others:
//! `about` is what a pack says of itself, `asks` what its flows want, `intake` takes its files in, `lock` says which
//! content a project uses, `trust` what the user trusts, and `seal` sees that it is that content.

pub(crate) mod manifest;
pub(crate) mod permission_items;
pub mod intake;
pub mod lock;
pub(crate) mod path;
pub(crate) mod persona;
pub(crate) mod quote;
pub mod resolve;
pub mod seal;
pub mod tree;
pub mod trust;
