//! Globs of paths, and as many of the paths that they match as a flow may have.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::error::{Code, Failure, Result};
use crate::model::file::FoundFiles;
use crate::model::text::excerpt;

/// The most files that one search gives.
const MOST_FILES: usize = 1000;

/// Returns a matcher of globs: `*` stays within a folder, `**` does not. A glob that names a folder means all in it.
pub(super) fn globs(patterns: &[String]) -> Result<GlobSet> {
    let wrong = |pattern: &str, error: &dyn std::fmt::Display| {
        let message = format!("`{}` is not a valid glob: {error}", excerpt(pattern));
        Failure::new(Code::RequestInvalid, message).hint("such as `src/**/*.rs`")
    };
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let plain = pattern.trim_start_matches("./").trim_end_matches('/');
        for pattern in [plain.to_owned(), format!("{plain}/**")] {
            let glob = GlobBuilder::new(&pattern).literal_separator(true).backslash_escape(true).build();
            set.add(glob.map_err(|error| wrong(&pattern, &error))?);
        }
    }
    set.build().map_err(|error| wrong(&patterns.join(" "), &error))
}

/// Returns as many paths as a flow may have.
pub(super) fn limit_files(mut paths: Vec<String>) -> FoundFiles {
    let cut = paths.len() > MOST_FILES;
    paths.truncate(MOST_FILES);
    FoundFiles { paths, cut }
}
