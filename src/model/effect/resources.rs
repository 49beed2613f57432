//! What worktrees and branches are called among the things that effects build on.

pub(super) fn tree_resource(name: &str) -> String {
    format!("tree {name}")
}

pub(super) fn branch_resource(name: &str) -> String {
    format!("branch {name}")
}
