//! Names of worktrees and branches as resources that effects depend on.

pub(super) fn tree_resource(name: &str) -> String {
    format!("tree {name}")
}

pub(super) fn branch_resource(name: &str) -> String {
    format!("branch {name}")
}
