//! Context windows of models: those of `windows.json`, and the user's own, which replace them.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::model_table::ModelTable;

fn file() -> &'static ModelTable<u64> {
    static FILE: OnceLock<ModelTable<u64>> = OnceLock::new();
    FILE.get_or_init(|| ModelTable::read(include_str!("windows.json")))
}

/// Returns how many tokens `provider/model` takes in one call, request and reply together; `None` if unknown.
pub fn window(user_windows: &BTreeMap<String, u64>, model: &str) -> Option<u64> {
    user_windows.get(model).or_else(|| file().find_by_prefix(model)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_the_users_word_or_the_longest_known_name_and_never_a_guess() {
        let user_windows = BTreeMap::from([("lab/qwen".to_owned(), 4096), ("openai/gpt-4o".to_owned(), 7)]);
        assert_eq!(window(&user_windows, "lab/qwen"), Some(4096));
        assert_eq!(window(&user_windows, "openai/gpt-4o"), Some(7));
        assert_eq!(window(&user_windows, "openai/gpt-4o-mini"), Some(128_000));
        assert_eq!(window(&user_windows, "anthropic/claude-sonnet-4-5"), Some(200_000));
        assert_eq!(window(&user_windows, "anthropic/claude-sonnet-5-5"), Some(1_000_000));
        assert_eq!(window(&user_windows, "openai/test"), None);
        for name in file().models.keys() {
            let provider = name.split('/').next().unwrap_or_default();
            let known = super::super::provider_defaults::ALL.iter().any(|defaults| defaults.name == provider);
            assert!(known || provider == "local", "{name}");
        }
    }
}
