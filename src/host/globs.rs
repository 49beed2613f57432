//! Globs over paths, and the limit on the paths that a search returns.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::error::{Code, Failure, Result};
use crate::model::effect::files::FoundFiles;
use crate::model::text::excerpt;

/// The most files that one search returns.
const MOST_FILES: usize = 1000;

/// Returns a matcher of globs: `*` stays within a folder, `**` does not. A glob that names a folder matches all files in it.
pub(super) fn globs(patterns: &[String]) -> Result<GlobSet> {
    let invalid = |pattern: &str, error: &dyn std::fmt::Display| {
        let message = format!("`{}` is not a valid glob: {error}", excerpt(pattern));
        Failure::new(Code::RequestInvalid, message).hint("such as `src/**/*.rs`")
    };
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let plain = pattern.trim_start_matches("./").trim_end_matches('/');
        for pattern in [plain.to_owned(), format!("{plain}/**")] {
            let glob = GlobBuilder::new(&pattern).literal_separator(true).backslash_escape(true).build();
            set.add(glob.map_err(|error| invalid(&pattern, &error))?);
        }
    }
    set.build().map_err(|error| invalid(&patterns.join(" "), &error))
}

/// Cuts the list at the most files that a search returns.
pub(super) fn limit_files(mut paths: Vec<String>) -> FoundFiles {
    let cut = paths.len() > MOST_FILES;
    paths.truncate(MOST_FILES);
    FoundFiles { paths, cut }
}
