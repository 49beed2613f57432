//! The promise: whatever names the files of a repository have, what git lists of them is read as git means it; and whatever
//! git prints, reading it ends with what it says or with a failure, and moves nothing but branches of runs.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nietz::error::{Code, Result};
use nietz::host::git::Repository;
use nietz::host::git::fetch::{self, FetchedEntry, FetchedKind, TreeVisitor};
use nietz::model::effect::git::GitOp;
use nietz::model::effect::worktree::{TreeOp, WorktreeOp};
use nietz::model::git::is_reserved;
use nietz::pack::intake::{self, Intake};
use proptest::collection::{btree_map, vec};
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::select;
use serde_json::Value;

use super::draw::{Bytes, mutated};
use super::holds;
use crate::support::git::git;

const NOW: u64 = 1_767_950_000;

/// Names as git keeps them, and as none would write them by hand.
fn name() -> impl Strategy<Value = Vec<u8>> {
    let piece = select(vec![
        &b"a"[..],
        b"b",
        b"flows",
        b" ",
        b"\n",
        b"\t",
        b"\"",
        b"\\",
        b"'",
        b" -> ",
        b"R100",
        b"M ",
        b"?? ",
        b"-",
        b"--",
        b":",
        b":(attr)",
        b"*",
        b"\xff",
        b"\xc3\xa9",
        b"e\xcc\x81",
        b"\x1b[2J",
        b"\r",
        b"\x01",
        b"100644 blob 0123456789 3\tx",
        b"CONFLICT (content): x",
        b"tree",
        b"\xe2\x80\xae",
        b"nietz.yaml",
        b"{",
        b"[",
        b"$(x)",
        b"|",
        b"\x7f",
    ]);
    let part = prop_oneof![
        8 => vec(piece, 1..4).prop_map(|pieces| pieces.concat()),
        1 => (1..200_usize).prop_map(|length| vec![b'l'; length]),
        1 => vec(prop_oneof![1..b'/', b'0'..=u8::MAX], 1..5),
    ];
    let fine = |part: &Vec<u8>| !matches!(&part[..], b"." | b".." | b".git") && !part.starts_with(b".git");
    vec(part.prop_filter("git keeps it", fine), 1..4).prop_map(|parts| parts.join(&b'/'))
}

/// The files of a commit, by their paths; none is a folder of another.
fn files() -> impl Strategy<Value = BTreeMap<Vec<u8>, (bool, Vec<u8>)>> {
    let content = prop_oneof![
        vec(any::<u8>(), 0..40),
        Just(b"\0".to_vec()),
        Just(b"one\ntwo\n".to_vec()),
        Just(vec![b'x'; 5_000])
    ];
    btree_map(name(), (any::<bool>(), content), 1..6).prop_map(|files| {
        let names: BTreeSet<Vec<u8>> = files.keys().cloned().collect();
        let above = |name: &[u8]| (1..name.len()).any(|at| name[at] == b'/' && names.contains(&name[..at]));
        files.into_iter().filter(|(name, _)| !above(name)).collect()
    })
}

type Files = BTreeMap<Vec<u8>, (bool, Vec<u8>)>;

/// Has git itself make commits of just these files, on branches of these names. All but the first follow the first.
fn import(folder: &Path, branches: &[(&str, &Files)]) {
    let mut input = Vec::new();
    for (number, (branch, files)) in branches.iter().enumerate() {
        input.extend(
            format!(
                "commit refs/heads/{branch}\nmark :{}\ncommitter S <s@example.org> {NOW} +0000\ndata 1\nx\n",
                number + 1
            )
            .bytes(),
        );
        if number > 0 {
            input.extend(b"from :1\ndeleteall\n");
        }
        for (path, (executable, content)) in *files {
            let quoted: String = path.iter().map(|byte| format!("\\{byte:03o}")).collect();
            let mode = if *executable { "100755" } else { "100644" };
            input.extend(format!("M {mode} inline \"{quoted}\"\ndata {}\n", content.len()).bytes());
            input.extend(content);
            input.push(b'\n');
        }
    }
    let mut command = Command::new("git");
    command.env_clear().env("PATH", "/usr/bin:/bin").env("GIT_CONFIG_GLOBAL", "/dev/null").current_dir(folder);
    command.args(["-c", "core.protectNTFS=false", "-c", "core.protectHFS=false", "fast-import", "--quiet"]);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("git is there");
    child.stdin.take().expect("it was asked for").write_all(&input).expect("it listens");
    assert!(child.wait().expect("it ends").success());
}

/// A workspace with a repository, and a folder for worktrees beside it.
struct Place {
    folder: tempfile::TempDir,
    path: String,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let place = Place { folder, path: "/usr/bin:/bin".to_owned() };
        ["work", "trees", "bin", "said"]
            .iter()
            .for_each(|name| std::fs::create_dir(place.at(name)).expect("a folder can be made"));
        git(&place.at("work"), ["init", "-q", "-b", "main"]);
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().expect("it is there").join(name)
    }

    fn environment(&self) -> BTreeMap<String, String> {
        BTreeMap::from([
            ("PATH".to_owned(), self.path.clone()),
            ("HOME".to_owned(), self.at("trees").display().to_string()),
        ])
    }

    fn repository(&self) -> Repository {
        Repository::new(
            &self.at("work"),
            &self.at("trees"),
            "r1",
            &self.environment(),
            nietz::model::git::GitLimits::default(),
        )
    }

    fn commit(&self, branch: &str) -> String {
        git(&self.at("work"), ["rev-parse", branch])
    }

    /// The paths of a commit, as git itself lists them.
    fn listed(&self, branch: &str) -> BTreeSet<Vec<u8>> {
        let mut command = Command::new("git");
        command.env_clear().env("PATH", "/usr/bin:/bin").current_dir(self.at("work"));
        let listed =
            command.args(["ls-tree", "-r", "-z", "--name-only", branch]).output().expect("git is there").stdout;
        listed.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect()
    }

    fn branches(&self) -> usize {
        git(&self.at("work"), ["for-each-ref", "--format=%(refname)"]).lines().count()
    }

    fn ask(&self, git: &GitOp) -> Result<Value> {
        self.repository().perform(git, false, NOW).map(|done| plain(&done))
    }

    /// Fetches a branch as a pack's is, into a folder that is thrown away.
    fn fetch(&self, branch: &str, taker: &mut dyn TreeVisitor) -> Result<String> {
        let scratch = tempfile::tempdir().expect("a temporary folder can be made");
        let url = self.at("work").display().to_string();
        fetch::fetch(&self.environment(), (&url, branch), &scratch.path().join("git"), |name| !name.is_empty(), taker)
    }
}

fn texts(value: &Value) -> BTreeSet<String> {
    value.as_array().expect("a list").iter().map(|item| item.as_str().expect("a text").to_owned()).collect()
}

/// The paths that are text: others are nothing that a flow can name.
fn readable<'f>(files: impl Iterator<Item = &'f Vec<u8>>) -> BTreeSet<String> {
    files.filter_map(|path| String::from_utf8(path.clone()).ok()).collect()
}

/// What was listed and what was read.
#[derive(Default)]
struct Taken(Files);

impl TreeVisitor for Taken {
    fn visit_entry(&mut self, listed: &FetchedEntry) -> Result<()> {
        if listed.kind == FetchedKind::File {
            self.0.insert(
                listed.path.clone(),
                (listed.executable, vec![b'?'; usize::try_from(listed.size).expect("it is small")]),
            );
        }
        Ok(())
    }

    fn visit_content(&mut self, listed: &FetchedEntry, content: &mut dyn Read) -> Result<()> {
        let (_, known) = self.0.get_mut(&listed.path).expect("it was listed before");
        known.clear();
        content.read_to_end(known).expect("it can be read");
        Ok(())
    }
}

#[test]
fn what_git_lists_of_odd_names_is_read_as_git_means_it() {
    holds("git_names", (files(), files(), files()), |(base, ours, theirs)| {
        let place = Place::new();
        import(&place.at("work"), &[("main", base), ("nietz/ours", ours), ("nietz/theirs", theirs)]);
        let (from, to) = (place.commit("main"), place.commit("nietz/ours"));
        let found = place.ask(&GitOp::Files { commit: to.clone(), glob: "**".to_owned() }).expect("it is listed");
        assert_eq!(texts(&found["paths"]), readable(ours.keys()));
        let changed = place.ask(&GitOp::Changed { from: from.clone(), to: to.clone() }).expect("it is listed");
        let differ = base.keys().chain(ours.keys()).filter(|path| base.get(*path) != ours.get(*path));
        assert_eq!(texts(&changed), readable(differ));
        place.ask(&GitOp::Diff { from, to, path: None }).expect("there is a patch");
        let mut taken = Taken::default();
        // What is wanted of the top is named by a text.
        let is_wanted = |path: &[u8]| {
            let top = path.split(|byte| *byte == b'/').next().unwrap_or_default();
            std::str::from_utf8(top).is_ok()
        };
        let wanted: Files =
            ours.iter().filter(|(path, _)| is_wanted(path)).map(|(path, file)| (path.clone(), file.clone())).collect();
        match place.fetch("nietz/ours", &mut taken) {
            Ok(_) => assert_eq!(taken.0, wanted),
            Err(failure) => assert!(wanted.is_empty(), "{failure:?}"),
        }
        let merge = GitOp::Merge {
            from: "nietz/theirs".to_owned(),
            into: "nietz/ours".to_owned(),
            message: "m".to_owned(),
            squash: false,
            author: None,
        };
        match place.ask(&merge) {
            Ok(merged) => {
                // What is in conflict is a path of one of the three, as it is, with what git puts behind it, or in the folder that
                // git takes its own to have become.
                let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
                let known: Vec<String> = [base, ours, theirs]
                    .iter()
                    .flat_map(|files| files.keys())
                    .map(|path| String::from_utf8_lossy(path).into_owned())
                    .collect();
                for path in merged.get("conflicts").map(texts).unwrap_or_default() {
                    let is_of = |one: &String| path.starts_with(one.as_str()) || name(&path).starts_with(&name(one));
                    assert!(known.iter().any(is_of), "{path:?} is no path of {known:?}");
                }
                let said = merged.get("messages").map(texts).unwrap_or_default();
                assert!(said.iter().all(|message| message.starts_with("CONFLICT (")), "{said:?}");
            }
            Err(failure) => assert_eq!(failure.code, Code::PathRefused, "{failure:?}"),
        }
        assert_eq!(place.commit("main"), git(&place.at("work"), ["rev-parse", "HEAD"]));
    });
}

fn plain(done: &impl serde::Serialize) -> Value {
    serde_json::to_value(done).expect("an outcome is plain data")
}

/// Does something in the worktree `t`.
fn in_tree(repository: &Repository, op: &TreeOp) -> Result<Value> {
    let worktree = WorktreeOp { tree: "t".to_owned(), op: op.clone() };
    repository.perform_in(&worktree, false, NOW).map(|done| plain(&done))
}

/// What a command leaves in a worktree is committed under its own name, or told.
#[test]
fn what_has_an_odd_name_in_a_worktree_is_committed_or_told() {
    holds("git_worktree", (files(), files()), |(base, new)| {
        let place = Place::new();
        import(&place.at("work"), &[("main", base), ("nietz/run", base)]);
        let repository = place.repository();
        let made = repository
            .perform(&GitOp::Worktree { name: "t".to_owned(), branch: "nietz/run".to_owned() }, false, NOW)
            .expect("a worktree");
        let made = plain(&made);
        let folder = Path::new(made["path"].as_str().expect("it is there"));
        for path in base.keys() {
            assert!(
                folder.join(OsStr::from_bytes(path)).symlink_metadata().is_ok(),
                "{:?} is not there",
                Bytes(path.clone())
            );
        }
        let mut expected: BTreeSet<Vec<u8>> = base.keys().cloned().collect();
        for (path, (executable, content)) in new {
            let place = folder.join(OsStr::from_bytes(path));
            // A file stands where a folder has to be, or the other way round.
            if place.parent().is_some_and(|above| std::fs::create_dir_all(above).is_err()) || place.is_dir() {
                continue;
            }
            std::fs::write(&place, content).expect("it can be written");
            std::fs::set_permissions(&place, PermissionsExt::from_mode(if *executable { 0o755 } else { 0o644 }))
                .expect("it is ours");
            if !is_reserved(&String::from_utf8_lossy(path)) {
                expected.insert(path.clone());
            }
        }
        let commit = TreeOp::Commit { branch: "nietz/run".to_owned(), message: "m".to_owned(), author: None };
        in_tree(&repository, &commit).expect("it is committed");
        let told = repository.remarks();
        assert_eq!(place.listed("nietz/run"), expected, "{told:?}");
        let reserved = new.keys().any(|path| is_reserved(&String::from_utf8_lossy(path)));
        assert!(reserved || told.is_empty(), "{told:?}");
        let found = in_tree(&repository, &TreeOp::Find { glob: "**".to_owned() }).expect("it is listed");
        let known = readable(base.keys().chain(new.keys()));
        assert!(texts(&found["paths"]).is_subset(&known), "{found}");
    });
}

/// A name that is no text hides nothing: neither what is nietz's own from a merge, nor what would be lost.
#[test]
fn what_has_a_name_that_is_no_text_is_kept_and_refused_like_any_other() {
    let place = Place::new();
    let files =
        |paths: &[&[u8]]| -> Files { paths.iter().map(|path| (path.to_vec(), (false, b"x".to_vec()))).collect() };
    let (base, ours, theirs) = (files(&[b"a"]), files(&[b"a", b"b"]), files(&[b"a", b"\xff/nietz.yaml"]));
    import(&place.at("work"), &[("main", &base), ("nietz/ours", &ours), ("nietz/theirs", &theirs)]);
    let merge = GitOp::Merge {
        from: "nietz/theirs".to_owned(),
        into: "nietz/ours".to_owned(),
        message: "m".to_owned(),
        squash: false,
        author: None,
    };
    let failure = place.ask(&merge).expect_err("it holds something of nietz's own");
    assert_eq!(failure.code, Code::PathRefused, "{failure:?}");
    let repository = place.repository();
    let worktree = GitOp::Worktree { name: "t".to_owned(), branch: "nietz/ours".to_owned() };
    let made = plain(&repository.perform(&worktree, false, NOW).expect("a worktree"));
    let folder = Path::new(made["path"].as_str().expect("it is there"));
    std::fs::write(folder.join(OsStr::from_bytes(b"\xfe")), "x").expect("it can be written");
    let remove = TreeOp::Remove { discard: false };
    let failure = in_tree(&repository, &remove).expect_err("a file would be lost");
    assert!(failure.message.contains("is not committed"), "{failure:?}");
    let commit = TreeOp::Commit { branch: "nietz/ours".to_owned(), message: "m".to_owned(), author: None };
    in_tree(&repository, &commit).expect("it is committed");
    assert!(place.listed("nietz/ours").contains(&b"\xfe"[..]));
    in_tree(&repository, &remove).expect("nothing is lost");
}

/// The words by which calls of git are told apart.
const WORDS: &[&str] = &[
    "ls-tree",
    "cat-file",
    "diff-tree",
    "merge-tree",
    "ls-files",
    "rev-parse",
    "config",
    "worktree",
    "version",
    "symbolic-ref",
    "ls-remote",
    "rev-list",
];

/// A git in a folder of its own that notes what the real one says, or says what is given.
fn git_that(place: &mut Place, does: &str) {
    let (said, words) = (place.at("said").display().to_string(), WORDS.join("|"));
    let script = format!(
        "#!/bin/sh\nfor word in \"$@\"; do case \"$word\" in {words})\n  {}\n  break;; esac; done\nexec /usr/bin/git \"$@\"\n",
        does.replace("SAID", &said)
    );
    let file = place.at("bin").join("git");
    std::fs::write(&file, script).expect("it can be written");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).expect("it is ours");
    place.path = format!("{}:/usr/bin:/bin", place.at("bin").display());
}

const NOTES: &str = "/usr/bin/git \"$@\" | tee \"SAID/$word\"; exit 0";
const SAYS: &str = "if [ -f \"SAID/$word\" ]; then cat \"SAID/$word\"; exit \"$(cat SAID/code)\"; fi";

fn questions(place: &Place) -> Vec<GitOp> {
    let (from, to) = (place.commit("main"), place.commit("nietz/ours"));
    let merge = GitOp::Merge {
        from: "nietz/theirs".to_owned(),
        into: "nietz/ours".to_owned(),
        message: "m".to_owned(),
        squash: false,
        author: None,
    };
    vec![
        GitOp::Files { commit: to.clone(), glob: "**".to_owned() },
        GitOp::Changed { from: from.clone(), to: to.clone() },
        GitOp::Diff { from, to, path: None },
        GitOp::Head,
        GitOp::Snapshot,
        merge,
    ]
}

/// Takes a pack in, as it is done.
struct Pack<'a>(Intake<'a>);

impl TreeVisitor for Pack<'_> {
    fn visit_entry(&mut self, listed: &FetchedEntry) -> Result<()> {
        let plain = matches!(listed.kind, FetchedKind::File | FetchedKind::Folder);
        self.0.path(Path::new(OsStr::from_bytes(&listed.path)), plain, "another thing")?;
        self.0.expects(listed.size)
    }

    fn visit_content(&mut self, listed: &FetchedEntry, content: &mut dyn Read) -> Result<()> {
        self.0.file(&String::from_utf8_lossy(&listed.path), listed.executable, listed.size, content)
    }
}

#[test]
fn whatever_git_prints_is_read_or_refused_and_nothing_of_the_user_s_is_moved() {
    let mut place = Place::new();
    let files = |texts: &[(&str, &str)]| -> Files {
        texts.iter().map(|(path, text)| (path.as_bytes().to_vec(), (false, text.as_bytes().to_vec()))).collect()
    };
    let base = files(&[("flows/a.lua", "return 1\n"), ("flows/b c.lua", "x\n"), ("é", "one\n")]);
    let ours = files(&[("flows/a.lua", "return 2\n"), ("flows/b c.lua", "x\n"), ("new\nline", "")]);
    let theirs = files(&[("flows/a.lua", "return 3\n"), ("é", "two\n")]);
    import(&place.at("work"), &[("main", &base), ("nietz/ours", &ours), ("nietz/theirs", &theirs)]);
    git(&place.at("work"), ["checkout", "-q", "main"]);
    git(&place.at("work"), ["config", "filter.x.clean", "cat"]);
    std::fs::write(place.at("work").join("changed"), "x").expect("it can be written");
    git_that(&mut place, NOTES);
    for question in questions(&place) {
        let _ = place.ask(&question);
    }
    let into = tempfile::tempdir().expect("a temporary folder can be made");
    let _ = place.fetch("main", &mut Pack(Intake::new(into.path())));
    let url = place.at("work").display().to_string();
    let _ = fetch::tags(&place.environment(), &url);
    let read = |word: &str| std::fs::read(place.at("said").join(word)).ok();
    let said: Vec<(&str, Vec<u8>)> = WORDS.iter().filter_map(|word| Some((*word, read(word)?))).collect();
    assert!(
        said.len() > 8,
        "git was asked for less than that: {:?}",
        said.iter().map(|(word, _)| word).collect::<Vec<_>>()
    );
    std::fs::remove_dir_all(place.at("said")).and_then(|()| std::fs::create_dir(place.at("said"))).expect("it is ours");
    git_that(&mut place, SAYS);
    let (main, questions) = (place.commit("main"), questions(&place));
    let texts = mutated(said.iter().map(|(_, text)| text.clone()).collect());
    let drawn = (texts, select(vec![0, 0, 0, 1, 128]), 0..questions.len() + 2);
    holds("git_output", drawn, |((which, text), code, asked)| {
        let file = place.at("said").join(said[*which].0);
        std::fs::write(&file, &text.0)
            .and_then(|()| std::fs::write(place.at("said/code"), code.to_string()))
            .expect("it can be written");
        let root = tempfile::tempdir().expect("a temporary folder can be made");
        let into = root.path().join("pack");
        match questions.get(*asked) {
            Some(question) => {
                let value = place.ask(question).unwrap_or_default();
                let lists = [&value, &value["paths"], &value["conflicts"]];
                let mut paths = lists.into_iter().filter_map(Value::as_array).flatten();
                assert!(paths.all(|path| path.as_str().is_some_and(|path| !path.contains('\0'))), "{value}");
            }
            None if *asked == questions.len() => {
                std::fs::create_dir(&into).expect("a folder can be made");
                if place.fetch("main", &mut Pack(Intake::new(&into))).is_ok() {
                    let _ = intake::copy_folder(&into, &root.path().join("second"));
                }
            }
            None => drop(fetch::tags(&place.environment(), &url)),
        }
        assert!(std::fs::read_dir(root.path()).expect("it is there").count() <= 2);
        std::fs::remove_file(&file).expect("it is there");
        let (head, branches) = (git(&place.at("work"), ["rev-parse", "main"]), place.branches());
        assert_eq!((head.as_str(), branches), (main.as_str(), 3));
    });
}
