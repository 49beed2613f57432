//! Documents.
