//! Configuration of build tools for commands: the sources of packages, without keys.

/// Words that mark a line as one with a key.
pub(super) const KEYS: &[&str] = &["token", "secret", "passw", "_auth", "credential", "api_key", "apikey", "private"];
/// Beginnings of tables that may hold keys under any name, and are left out.
const TABLES: &[&str] = &["[env", "[ env"];

/// Returns a text of `name = value` lines without those that name a key, and without users and passwords in addresses;
/// `None` if a value has several lines.
pub(super) fn without_keys(text: &str) -> Option<String> {
    if text.contains("\"\"\"") || text.contains("'''") {
        return None;
    }
    let mut kept = String::with_capacity(text.len());
    let mut skipping = false;
    for line in text.lines() {
        let start = line.trim_start();
        if start.starts_with('[') && start.trim_end().ends_with(']') {
            skipping = TABLES.iter().any(|table| start.starts_with(table));
        }
        let lower = line.to_lowercase();
        if skipping || start.starts_with(['#', ';']) {
            continue;
        }
        if KEYS.iter().any(|key| lower.contains(key)) {
            // Only the first line of a longer value would be removed.
            if !is_whole(line) {
                return None;
            }
            continue;
        }
        let line = without_user(line);
        // A proxy's address may lack the `https://` by which `without_user` finds it.
        if lower.contains("proxy") && line.contains('@') {
            continue;
        }
        kept.push_str(&line);
        kept.push('\n');
    }
    Some(kept)
}

/// Returns whether a value ends in its line: brackets are closed, and no `\` continues it.
fn is_whole(line: &str) -> bool {
    let count = |sign: char| line.matches(sign).count();
    count('[') == count(']') && count('{') == count('}') && !line.trim_end().ends_with('\\')
}

/// Removes `user:password@` from addresses.
fn without_user(line: &str) -> String {
    let mut rest = line;
    let mut kept = String::with_capacity(line.len());
    while let Some(at) = rest.find("://") {
        let (before, address) = rest.split_at(at + 3);
        kept.push_str(before);
        let end = address.find(|c: char| c.is_whitespace() || matches!(c, '/' | '"' | '\'' | '?' | '#'));
        let (host, after) = address.split_at(end.unwrap_or(address.len()));
        kept.push_str(host.rsplit_once('@').map_or(host, |(_, host)| host));
        rest = after;
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::without_keys;

    #[test]
    fn sources_stay_and_keys_do_not() {
        let cargo = "[net]\noffline = true\n[registry]\ntoken = \"k1\"\n[env]\nX = \"k2\"\n[registries.a]\n\
                     index = \"sparse+https://me:k3@example.org/i/\"\nb = { index = \"x\", token = \"k4\" }\n# k5 token\n";
        let kept = without_keys(cargo).expect("it is read");
        assert_eq!(
            kept,
            "[net]\noffline = true\n[registry]\n[registries.a]\nindex = \"sparse+https://example.org/i/\"\n"
        );
        let npm = "registry=https://r.example/\n//r.example/:_authToken=k\n_auth=k\n//r.example/:_password=k\n";
        assert_eq!(without_keys(npm).expect("it is read"), "registry=https://r.example/\n");
        let pip = "[global]\nindex-url = https://me:k@pip.example/simple\n";
        assert_eq!(without_keys(pip).expect("it is read"), "[global]\nindex-url = https://pip.example/simple\n");
    }

    #[test]
    fn what_goes_over_several_lines_is_not_guessed_at() {
        for text in
            ["token = \"\"\"\nk\n\"\"\"\n", "tokens = [\n\"k\",\n]\n", "a = '''\ntoken = 1'''", "token = a\\\nk\n"]
        {
            assert_eq!(without_keys(text), None, "{text}");
        }
    }

    #[test]
    fn what_has_no_key_stays_as_it_is() {
        let text = "[build]\njobs = 2\n[target.x86_64-unknown-linux-gnu]\nrustflags = [\"-C\", \"link-arg=-s\"]\n";
        assert_eq!(without_keys(text).as_deref(), Some(text));
    }
}
