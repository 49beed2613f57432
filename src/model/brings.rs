//! Merge risks: files of a change that other programs run or obey without the person who merges it. They are reported before
//! the merge. This file has the lists, and checks paths, modes and texts; reading the files is up to the host.
//!
//! The lists contain what git runs as a hook, what a server runs after a push, and what starts by itself when a folder is
//! opened, entered, installed or built. They do not contain sources, tests and `Makefile`s, which run only when a person
//! starts them. Git keeps no set-uid modes, so that none can be merged.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use crate::model::text::line;

/// A path of a change, and its risk.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct MergeRisk {
    pub path: String,
    pub kind: MergeRiskKind,
    /// The target of a link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// Why a file that a merge brings deserves a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MergeRiskKind {
    Hook,
    /// It makes git or its helpers run a program or use another address.
    Git,
    Submodule,
    /// A link that leads out of the repository or into `.git`.
    Link,
    Ci,
    /// A program that opens, enters, installs or builds the folder runs or obeys it.
    Starts,
    /// It became executable.
    Executable,
}

impl MergeRiskKind {
    /// Returns the description for people.
    pub fn words(self) -> &'static str {
        match self {
            MergeRiskKind::Executable => "can be run",
            MergeRiskKind::Link => "is a link that leads elsewhere",
            MergeRiskKind::Submodule => "is a submodule",
            MergeRiskKind::Hook => "is run by git as a hook",
            MergeRiskKind::Ci => "is run by a server that builds",
            MergeRiskKind::Git => "tells git what to run or where to go",
            MergeRiskKind::Starts => "is run or obeyed by what opens, installs or builds the folder",
        }
    }
}

impl MergeRisk {
    /// Returns it as one line, which no file name can make look like another line.
    pub fn line(&self) -> String {
        let to = self.to.as_ref().map(|to| format!(": `{}`", quoted(to))).unwrap_or_default();
        format!("`{}` {}{to}", quoted(&self.path), self.kind.words())
    }
}

/// The longest name that is shown in full, in characters.
const SHOWN: usize = 200;

/// Returns a name without quotation marks of its own; of a long name, only the end.
fn quoted(name: &str) -> String {
    let name = line(name).replace('`', "\u{2b9}");
    let more = name.chars().count().saturating_sub(SHOWN);
    if more == 0 {
        name
    } else {
        name.chars().skip(more).fold("…".to_owned(), |text, c| text + c.encode_utf8(&mut [0; 4]))
    }
}

/// Modes in git trees.
pub(crate) const LINK: &str = "120000";
/// The mode of a submodule in git trees.
pub(crate) const SUBMODULE: &str = "160000";
/// The mode of an executable file in git trees.
pub(crate) const EXECUTABLE: &str = "100755";

/// Patterns of paths, which match in any folder and any case: `a/` is everything in a folder; `*` at the end of a part
/// matches any rest, at the beginning any start.
const PATHS: &[(MergeRiskKind, &[&str])] = &[
    (
        MergeRiskKind::Hook,
        &[
            ".githooks/",
            ".git-hooks/",
            "githooks/",
            ".husky/",
            ".huskyrc*",
            "lefthook.*",
            ".lefthook.*",
            ".lefthook/",
            ".overcommit.yml",
            ".pre-commit-config.yaml",
            ".pre-commit-hooks.yaml",
            ".simple-git-hooks.*",
            "simple-git-hooks.*",
            ".lintstagedrc*",
        ],
    ),
    (
        MergeRiskKind::Ci,
        &[
            ".github/workflows/",
            ".github/actions/",
            ".gitea/workflows/",
            ".forgejo/workflows/",
            ".gitlab-ci.*",
            ".gitlab/ci/",
            ".circleci/",
            ".travis.yml",
            "jenkinsfile*",
            "azure-pipelines*",
            ".azure-pipelines/",
            ".azuredevops/",
            ".buildkite/",
            ".drone.*",
            ".woodpecker*",
            ".woodpecker/",
            "bitbucket-pipelines.yml",
            "appveyor.yml",
            ".appveyor.yml",
            ".cirrus.*",
            ".teamcity/",
            "cloudbuild.*",
            "buildspec*",
            ".semaphore/",
            ".builds/",
            ".build.yml",
            "wercker.yml",
            ".tekton/",
            "codemagic.yaml",
            "bitrise.yml",
            ".readthedocs.*",
            "netlify.toml",
            "vercel.json",
            "render.yaml",
        ],
    ),
    (MergeRiskKind::Git, &[".gitmodules", ".lfsconfig", ".gitconfig"]),
    (
        MergeRiskKind::Starts,
        &[
            // Shells that enter the folder.
            ".envrc",
            ".autoenv*",
            ".mise.toml",
            "mise.toml",
            ".mise/",
            ".tool-versions",
            // Editors, and tools of models.
            ".vscode/",
            ".devcontainer/",
            ".devcontainer.json",
            ".idea/",
            ".fleet/",
            ".zed/",
            ".exrc",
            ".vimrc",
            ".nvimrc",
            ".nvim.lua",
            ".lvimrc",
            ".dir-locals.el",
            ".gdbinit",
            ".lldbinit",
            ".mcp.json",
            ".claude/",
            ".cursor/",
            ".codex/",
            ".gemini/",
            // What installs and builds.
            "build.rs",
            ".cargo/config",
            ".cargo/config.toml",
            "rust-toolchain",
            "rust-toolchain.toml",
            ".npmrc",
            ".yarnrc*",
            ".yarn/releases/",
            ".yarn/plugins/",
            ".pnp.*",
            ".pnpmfile.*",
            "bunfig.toml",
            "setup.py",
            "conftest.py",
            "sitecustomize.py",
            "usercustomize.py",
            "*.pth",
            "pip.conf",
            "extconf.rb",
            "binding.gyp",
            ".bundle/",
            ".mvn/",
            "mvnw*",
            "gradlew*",
            "gradle/wrapper/",
            "init.gradle*",
            ".bazelrc",
        ],
    ),
];

/// Files whose text decides, with the words that make a line relevant. `\u` is listed because TOML names can be written
/// with escapes.
const TEXTS: &[(&str, MergeRiskKind, &[&str])] = &[
    (".gitattributes", MergeRiskKind::Git, &["filter=", "diff=", "merge="]),
    ("cargo.toml", MergeRiskKind::Starts, &["build", "proc-macro", "proc_macro", "\\u"]),
    ("pyproject.toml", MergeRiskKind::Starts, &["backend", "\\u"]),
];

/// The same for JSON: top-level names that hold hooks, and parts of the names of scripts that run on installation.
const PACKAGES: &[&str] = &["package.json", "composer.json"];
const HOOKS: &[&str] = &["simple-git-hooks", "husky", "gitHooks", "pre-commit", "pre-push"];
const INSTALLS: &[&str] = &["install", "prepare", "publish", "dependencies", "update", "autoload", "package", "pack"];

/// Returns the risk of a path by its name alone.
pub(crate) fn by_name(path: &str) -> Option<MergeRiskKind> {
    let path = path.to_lowercase();
    let parts: Vec<&str> = path.split('/').collect();
    PATHS.iter().find_map(|(kind, patterns)| patterns.iter().any(|pattern| fits(&parts, pattern)).then_some(*kind))
}

/// Tells whether the text of a file decides its risk.
pub(crate) fn depends_on_text(path: &str) -> bool {
    let name = file_name(path);
    PACKAGES.contains(&name.as_str()) || TEXTS.iter().any(|(file, ..)| *file == name)
}

/// Returns the risk of what is new in the text of a file.
pub(crate) fn by_text(path: &str, before: &str, now: &str) -> Option<MergeRiskKind> {
    let name = file_name(path);
    if PACKAGES.contains(&name.as_str()) {
        // Text that cannot be parsed here may still be valid for other programs.
        let now = started(now);
        return (now.is_none() || now != started(before).or_else(|| started("{}"))).then_some(MergeRiskKind::Starts);
    }
    let (_, kind, words) = TEXTS.iter().find(|(file, ..)| *file == name)?;
    let lines = |text: &str| -> BTreeSet<String> {
        let lines = text.lines().filter(|line| words.iter().any(|word| line.contains(word)));
        lines.map(|line| line.trim().to_owned()).collect()
    };
    (!lines(now).is_subset(&lines(before))).then_some(*kind)
}

fn file_name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_lowercase()
}

/// Returns the hooks and scripts of a package that run without being called by name.
fn started(text: &str) -> Option<Vec<(String, Value)>> {
    let package: Value = serde_json::from_str(text).ok()?;
    let top = package.as_object()?;
    let hooks = top.iter().filter(|(name, _)| HOOKS.contains(&name.as_str()));
    let scripts = top.get("scripts").and_then(Value::as_object).into_iter().flatten();
    let scripts = scripts.filter(|(name, _)| INSTALLS.iter().any(|part| name.contains(part)));
    Some(hooks.chain(scripts).map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// Tells whether a link at a path leads out of the repository or into `.git`.
pub(crate) fn leads_elsewhere(path: &str, to: &str) -> bool {
    let mut folder: Vec<&str> = path.split('/').collect();
    folder.pop();
    if to.starts_with('/') {
        return true;
    }
    for part in to.split('/') {
        match part {
            "" | "." => {}
            ".." if folder.pop().is_none() => return true,
            ".." => {}
            part if part.eq_ignore_ascii_case(".git") => return true,
            part => folder.push(part),
        }
    }
    false
}

fn fits(parts: &[&str], pattern: &str) -> bool {
    let (pattern, is_folder) = match pattern.strip_suffix('/') {
        Some(folder) => (folder, true),
        None => (pattern, false),
    };
    let wanted: Vec<&str> = pattern.split('/').collect();
    (0..parts.len()).any(|at| {
        let rest = &parts[at..];
        let ends = if is_folder { rest.len() > wanted.len() } else { rest.len() == wanted.len() };
        ends && wanted.iter().zip(rest).all(|(wanted, part)| part_fits(part, wanted))
    })
}

fn part_fits(part: &str, wanted: &str) -> bool {
    match (wanted.strip_prefix('*'), wanted.strip_suffix('*')) {
        (Some(end), _) => part.ends_with(end),
        (_, Some(start)) => part.starts_with(start),
        (None, None) => part == wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_tells_what_starts_by_itself() {
        for (path, kind) in [
            (".github/workflows/ci.yml", Some(MergeRiskKind::Ci)),
            ("sub/.GitHub/Workflows/x", Some(MergeRiskKind::Ci)),
            (".github/CODEOWNERS", None),
            ("Jenkinsfile.prod", Some(MergeRiskKind::Ci)),
            (".husky/pre-commit", Some(MergeRiskKind::Hook)),
            (".husky", None),
            ("a/.envrc", Some(MergeRiskKind::Starts)),
            ("envrc", None),
            ("lib/x.pth", Some(MergeRiskKind::Starts)),
            (".cargo/config.toml", Some(MergeRiskKind::Starts)),
            ("cargo/config.toml", None),
            (".gitmodules", Some(MergeRiskKind::Git)),
            ("src/main.rs", None),
            ("Makefile", None),
        ] {
            assert_eq!(by_name(path), kind, "{path}");
        }
    }

    #[test]
    fn a_text_tells_by_what_is_new_in_it() {
        let package = |scripts: &str| format!("{{\"scripts\": {{{scripts}}}}}");
        for (path, before, now, kind) in [
            (".gitattributes", "", "*.x text\n", None),
            ("a/.gitattributes", "*.y filter=f\n", "*.x text\n*.y filter=f\n", None),
            (".gitattributes", "*.y filter=f\n", "* filter=f\n", Some(MergeRiskKind::Git)),
            ("Cargo.toml", "[package]\n", "[package]\nbuild = \"x.rs\"\n", Some(MergeRiskKind::Starts)),
            ("Cargo.toml", "[package]\n", "[package]\n\"b\\u0075ild\" = \"x.rs\"\n", Some(MergeRiskKind::Starts)),
            ("Cargo.toml", "[package]\n", "[package]\nedition = \"2024\"\n", None),
            ("package.json", "", &package("\"test\": \"x\""), None),
            ("web/package.json", "", &package("\"postinstall\": \"x\""), Some(MergeRiskKind::Starts)),
            ("package.json", "", &package("\"\\u0070repare\": \"x\""), Some(MergeRiskKind::Starts)),
            (
                "package.json",
                &package("\"prepare\": \"x\""),
                &package("\"prepare\": \"y\""),
                Some(MergeRiskKind::Starts),
            ),
            ("package.json", &package("\"prepare\": \"x\""), &package("\"prepare\": \"x\", \"test\": \"y\""), None),
            ("package.json", "", "// x\n{}", Some(MergeRiskKind::Starts)),
        ] {
            assert_eq!(by_text(path, before, now), kind, "{path}: {now}");
        }
    }

    #[test]
    fn no_name_looks_like_another_line() {
        let line = |path: &str| MergeRisk { path: path.to_owned(), kind: MergeRiskKind::Ci, to: None }.line();
        assert_eq!(line("a` is fine\n`b"), "`a\u{2b9} is fine\u{240a}\u{2b9}b` is run by a server that builds");
        let long = line(&("x".repeat(300) + "/.envrc"));
        assert!(long.starts_with("`…xx") && long.contains("x/.envrc` "), "{long}");
    }

    #[test]
    fn a_link_is_told_where_it_leads_out() {
        for (path, to, out) in [
            ("a", "b", false),
            ("a/b", "../c", false),
            ("a/b", "../../c", true),
            ("a", "..", true),
            ("a", "/etc", true),
            ("a/b", "./../c/../d", false),
            ("a", "x/../..", true),
            ("a", ".git/hooks/x", true),
            ("a/b", "../.GIT/config", true),
        ] {
            assert_eq!(leads_elsewhere(path, to), out, "{path} -> {to}");
        }
    }
}
