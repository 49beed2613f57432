//! Where flows come from: a folder on disk or the bundle (`tree`); `resolve` finds a flow by its name. For packs of
//! others, `manifest` reads what a pack says of itself, `permission_items` lists what its flows ask for, `intake` takes
//! its files in, `lock` records which content a project uses, `trust` what the user trusts, and `seal` checks that the
//! installed content is the one that was locked. `overlay` finds what of a project overrides files of a flow, `ejected` keeps
//! the originals of such files, and `data` reads folders to which a project can add files.

pub(crate) mod data;
pub(crate) mod data_folder;
pub(crate) mod ejected;
pub(crate) mod manifest;
pub(crate) mod overlay;
pub(crate) mod permission_items;
pub mod intake;
pub(crate) mod index;
pub mod lock;
pub(crate) mod path;
pub(crate) mod persona;
pub(crate) mod quote;
pub mod resolve;
pub mod seal;
pub mod tree;
pub mod trust;
