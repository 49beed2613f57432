//! The parts of the user's git configuration that apply although the rest does not: which files they ignore everywhere,
//! which attributes files have, and, for the user's filters, who they are and where their configuration is.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use super::{Repository, call, process};
use crate::error::Result;

/// The settings that name the user's files of patterns.
const PATTERNS: &str = r"^core\.(excludesfile|attributesfile)$";
const EXCLUDES: &str = "core.excludesFile";
const ATTRIBUTES: &str = "core.attributesFile";

/// The variables that filters get from the user's environment.
const OF_USER: &[&str] =
    &["XDG_CONFIG_HOME", "USER", "LOGNAME", "SSH_AUTH_SOCK", "http_proxy", "https_proxy", "HTTPS_PROXY", "no_proxy"];
/// The home of a user who has none: without a `HOME`, `~` would be a folder of the worktree.
const NO_HOME: &str = "/dev/null";

/// The variable with the script that points a filter's programs to the user's configuration; git itself does not use it.
const CONFIGURATION: &str = "NIETZ_GIT_CONFIGURATION";
/// Put before a filter's command.
const CONFIGURED: &[u8] = b"eval \"$NIETZ_GIT_CONFIGURATION\"; ";

/// Settings, each with its value.
pub(super) type GitSettings = Vec<(&'static str, OsString)>;

/// Returns the variables for calls that may run filters.
pub(super) fn variables(environment: &BTreeMap<String, String>) -> Vec<(String, OsString)> {
    let home = environment.get("HOME").filter(|home| Path::new(home).is_absolute());
    let mut all = vec![("HOME".to_owned(), home.map_or(NO_HOME, String::as_str).into())];
    let users = OF_USER.iter().filter_map(|name| Some(((*name).to_owned(), environment.get(*name)?.into())));
    all.extend(users);
    let mut script = "unset GIT_CONFIG_GLOBAL GIT_CONFIG_NOSYSTEM GIT_ATTR_NOSYSTEM".to_owned();
    for (name, value) in call::configuration(environment).iter().filter(|(name, _)| name.starts_with("GIT_")) {
        script.push_str(&format!("; export {name}='{}'", value.replace('\'', r"'\''")));
    }
    all.push((CONFIGURATION.to_owned(), script.into()));
    all
}

/// Changes the filter commands among these settings so that they find the user's configuration.
pub(super) fn configure_filters(settings: &mut [(OsString, OsString)]) {
    for (key, value) in settings {
        let key = key.as_bytes();
        let command = [".clean", ".smudge", ".process"].iter().any(|end| key.ends_with(end.as_bytes()));
        if command && key.starts_with(b"filter.") && !value.is_empty() {
            *value = OsString::from_vec([CONFIGURED, value.as_bytes()].concat());
        }
    }
}

impl Repository {
    /// Returns the settings for the files of patterns: the user's own, or git's default files in the user's folder. A
    /// repository may set its own ignore file, but not its own attributes file.
    pub(super) fn patterns(&self) -> Result<&GitSettings> {
        if let Some(known) = self.patterns.get() {
            return Ok(known);
        }
        let call = self.git().repository(&self.git_folders()?.common).with_user_config(&self.user);
        let listed = call.args(["config", "-z", "--show-scope", "--type=path", "--get-regexp", PATTERNS]).output()?;
        // Status 1 means that there are no such settings.
        if !matches!(listed.status.code(), Some(0 | 1)) {
            return Err(
                process::failure("config", &listed).hint("mend git's configuration: `git config --list` says the same")
            );
        }
        let settings = settings(&listed.stdout, |name| self.default_file(name));
        Ok(self.patterns.get_or_init(|| settings))
    }

    /// Returns the file that git reads by default.
    fn default_file(&self, name: &str) -> Option<OsString> {
        let own = self
            .user
            .get("XDG_CONFIG_HOME")
            .filter(|folder| !folder.is_empty())
            .map(|folder| Path::new(folder).to_owned());
        let folder = own.or_else(|| Some(Path::new(self.user.get("HOME")?).join(".config")))?;
        Some(folder.join("git").join(name).into_os_string())
    }
}

/// Parses a listing of entries: a scope, NUL, a name, a line end and a path, NUL. The last entry of a name counts.
fn settings(listing: &[u8], default_file: impl Fn(&str) -> Option<OsString>) -> GitSettings {
    let (mut ignored, mut attributes) = (default_file("ignore"), default_file("attributes"));
    let mut parts = listing.split(|byte| *byte == 0);
    while let (Some(scope), Some(entry)) = (parts.next(), parts.next()) {
        let Some(end) = memchr::memchr(b'\n', entry) else { continue };
        let path = OsStr::from_bytes(&entry[end + 1..]).to_owned();
        let users = matches!(scope, b"system" | b"global");
        match &entry[..end] {
            b"core.excludesfile" => ignored = users.then_some(path),
            b"core.attributesfile" if users => attributes = Some(path),
            _ => {}
        }
    }
    let both = [(EXCLUDES, ignored), (ATTRIBUTES, attributes)];
    both.into_iter().filter_map(|(key, path)| Some((key, path?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_own_files_count_and_what_a_repository_ignores() {
        let parsed = |listing: &str| {
            let default_file = |name: &str| Some(format!("/usual/{name}").into());
            let settings = settings(listing.replace('|', "\0").as_bytes(), default_file).into_iter();
            settings.map(|(key, path)| format!("{key}={}", path.display())).collect::<Vec<_>>()
        };
        let (ignore, attributes) = ("core.excludesFile=", "core.attributesFile=");
        assert_eq!(parsed(""), [format!("{ignore}/usual/ignore"), format!("{attributes}/usual/attributes")]);
        assert_eq!(
            parsed("system|core.excludesfile\n/s|global|core.excludesfile\n/g|global|core.attributesfile\n/a|"),
            [format!("{ignore}/g"), format!("{attributes}/a")]
        );
        assert_eq!(
            parsed("global|core.excludesfile\n/g|local|core.excludesfile\n/l|local|core.attributesfile\n/l|"),
            [format!("{attributes}/usual/attributes")]
        );
    }

    #[test]
    fn a_filter_has_a_home_that_is_not_the_worktree_and_the_users_configuration() {
        let environment = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<BTreeMap<_, _>>()
        };
        let all = variables(&environment(&[("HOME", "home"), ("USER", "u"), ("GIT_CONFIG_GLOBAL", "/it's")]));
        let script =
            "unset GIT_CONFIG_GLOBAL GIT_CONFIG_NOSYSTEM GIT_ATTR_NOSYSTEM; export GIT_CONFIG_GLOBAL='/it'\\''s'";
        let expected = [("HOME", NO_HOME), ("USER", "u"), (CONFIGURATION, script)];
        assert_eq!(all, expected.map(|(name, value)| (name.to_owned(), OsString::from(value))));
        let mut settings = [
            (OsString::from("filter.f.clean"), OsString::from("x %f")),
            ("filter.f.smudge".into(), "".into()),
            ("filter.f.required".into(), "true".into()),
        ];
        configure_filters(&mut settings);
        assert_eq!(settings.map(|(_, value)| value), [format!("eval \"${CONFIGURATION}\"; x %f").as_str(), "", "true"]);
    }
}
