//! The promise: a pack that was made to do harm is refused with a clear error, and leaves nothing behind.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

use crate::support::env::Env;
use crate::support::git::git;

const ABOUT: &str = "name: evil\nversion: 1.0.0\nsummary: Evil\nlicence: MIT\nhost_api: 1\n";
const PERSONA: &str = "---\nname: Evil\n---\nYou are evil.\n";

type Tar = Builder<GzEncoder<Vec<u8>>>;

/// Writes an entry with a path that no honest writer would write.
fn raw(tar: &mut Tar, path: &str, kind: EntryType, content: &[u8], link: &str) {
    let mut header = Header::new_ustar();
    header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_size(content.len() as u64);
    if !link.is_empty() {
        header.as_mut_bytes()[157..157 + link.len()].copy_from_slice(link.as_bytes());
    }
    header.set_cksum();
    tar.append(&header, content).expect("it can be written");
}

fn file(tar: &mut Tar, path: &str, content: impl AsRef<[u8]>) {
    raw(tar, path, EntryType::Regular, content.as_ref(), "");
}

/// A pack that would be fine without what `spoil` adds to it.
fn archive(spoil: impl FnOnce(&mut Tar)) -> Vec<u8> {
    let mut tar = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    file(&mut tar, "pack.yaml", ABOUT);
    file(&mut tar, "personas/evil.md", PERSONA);
    spoil(&mut tar);
    tar.into_inner().expect("it ends").finish().expect("it ends")
}

fn flow(body: &str) -> String {
    format!(
        "local nietz = require(\"@nietz\")\nlocal template = require(\"@nietz/template\")\n\
         return nietz.flow {{ name = \"evil\", summary = \"Evil\", run = function()\n{body}\nend }}\n"
    )
}

/// Adds the archive and expects a refusal; nothing may be left anywhere.
#[track_caller]
fn refused(what: &str, archive: Vec<u8>, words: &str) {
    let env = Env::new();
    let place = env.home().join("evil.tar.gz");
    std::fs::write(&place, archive).expect("it can be written");
    let ended = env.nietz(["pack", "add", &place.display().to_string(), "--yes"]).go();
    assert_eq!(ended.code, Some(4), "{what}: {ended:?}");
    assert!(ended.stderr.contains("[pack-invalid]") && ended.stderr.contains(words), "{what}: {}", ended.stderr);
    assert!(env.documents().is_empty(), "{what}: it wrote {:?}", env.documents().keys());
    let packs: Vec<_> = std::fs::read_dir(env.home().join("packs")).map(|all| all.collect()).unwrap_or_default();
    assert!(packs.is_empty(), "{what}: it left {packs:?}");
    let beside = std::fs::read_dir(env.home()).expect("it is there").count();
    assert!(beside <= 5, "{what}: it wrote into the home");
}

#[test]
fn a_pack_without_harm_is_added() {
    let env = Env::new();
    let place = env.home().join("fine.tar.gz");
    let fine = archive(|tar| {
        file(tar, "flows/evil.lua", flow("return 1"));
        raw(tar, "flows/evil/", EntryType::Directory, b"", "");
    });
    std::fs::write(&place, fine).expect("it can be written");
    env.nietz(["pack", "add", &place.display().to_string(), "--yes"]).go().exits(0);
    env.nietz(["run", "evil"]).go().exits(0);
}

#[test]
fn paths_that_leave_the_pack_are_refused() {
    let cases: &[(&str, &str)] = &[
        ("../evil.md", "leads out"),
        ("flows/../../evil.md", "leads out"),
        ("personas/../../../../../../tmp/evil.md", "leads out"),
        ("/etc/evil.md", "is absolute"),
        ("//etc/evil.md", "is absolute"),
        ("flows\\..\\evil.md", "characters"),
        ("flows/a\u{1b}[2J.md", "characters"),
        ("flows/a\nb.md", "characters"),
        ("a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r", "too deep"),
    ];
    for (path, words) in cases {
        refused(path, archive(|tar| file(tar, path, "x")), words);
    }
    let odd = archive(|tar| {
        let mut header = Header::new_ustar();
        header.as_mut_bytes()[..9].copy_from_slice(b"flows/\xff\xfex");
        header.set_size(0);
        header.set_mode(0o644);
        header.set_cksum();
        tar.append(&header, &[][..]).expect("it can be written");
    });
    refused("a path that is not UTF-8", odd, "not UTF-8");
}

#[test]
fn links_and_devices_are_refused() {
    let cases = [
        (EntryType::Symlink, "/etc/passwd", "a link"),
        (EntryType::Symlink, "../../../home", "a link"),
        (EntryType::Symlink, "evil.md", "a link"),
        (EntryType::Link, "/etc/passwd", "a link"),
        (EntryType::Link, "personas/evil.md", "a link"),
        (EntryType::Char, "", "a device"),
        (EntryType::Block, "", "a device"),
        (EntryType::Fifo, "", "a device"),
        (EntryType::new(b'Z'), "", "unknown kind"),
    ];
    for (kind, target, words) in cases {
        refused(&format!("{kind:?} {target}"), archive(|tar| raw(tar, "personas/link.md", kind, b"", target)), words);
    }
    // A link first, and then a file through it.
    let through = archive(|tar| {
        raw(tar, "personas/out", EntryType::Symlink, b"", "/tmp");
        file(tar, "personas/out/evil.md", "x");
    });
    refused("a file through a link", through, "a link");
}

#[test]
fn bombs_are_refused_before_they_fill_the_disk() {
    let zeros = archive(|tar| {
        let megabyte = vec![0; 1 << 20];
        for number in 0..80 {
            file(tar, &format!("quotes/{number}.txt"), &megabyte);
        }
    });
    assert!(zeros.len() < 2 << 20, "it is a small archive");
    refused("zeros", zeros, "MiB");
    refused("one large file", archive(|tar| file(tar, "quotes/big.txt", vec![0; 5 << 20])), "larger than");
    let many = archive(|tar| {
        for number in 0..100_000 {
            file(tar, &format!("quotes/{number}"), b"");
        }
    });
    refused("100,000 files", many, "more than 2000 files");
    let mut torn = archive(|_| {});
    torn.truncate(torn.len() / 2);
    refused("a torn archive", torn, "deflate");
    let mut plain = Vec::new();
    plain.write_all(b"this is no archive").expect("memory is there");
    refused("no archive", plain, "cannot be read");
    // A size that the header only claims.
    let claimed = archive(|tar| {
        let mut header = Header::new_ustar();
        header.set_path("quotes/claims.txt").expect("a path");
        header.set_size(1 << 40);
        header.set_mode(0o644);
        header.set_cksum();
        tar.append(&header, &b"x"[..]).expect("it can be written");
    });
    refused("a claimed size", claimed, "larger than");
}

#[test]
fn names_that_hide_each_other_are_refused() {
    refused("case", archive(|tar| file(tar, "personas/EVIL.md", PERSONA)), "differ only in case");
    refused("case of a folder", archive(|tar| file(tar, "Personas/other.md", PERSONA)), "differ only in case");
    refused(
        "form",
        archive(|tar| {
            file(tar, "quotes/e\u{301}.txt", "x");
            file(tar, "quotes/\u{e9}.txt", "y");
        }),
        "differ only in case",
    );
    refused("twice", archive(|tar| file(tar, "personas/evil.md", "other")), "there twice");
    refused("a file and a folder", archive(|tar| file(tar, "personas/evil.md/x", "x")), "a file and a folder");
}

#[test]
fn code_that_hides_something_is_refused() {
    refused("bytecode", archive(|tar| file(tar, "flows/evil.lua", b"\x1bLuaS\0\x19\x93")), "bytecode");
    refused("Luau bytecode", archive(|tar| file(tar, "flows/evil/room.luau", b"\x06\x03\x00abc")), "bytecode");
    let manifest =
        flow("return 1").replace("run =", "permissions = { llm = true, git = true, exec = { \"sh\" } }, run =");
    refused(
        "a manifest that differs",
        archive(|tar| file(tar, "flows/evil.lua", &manifest)),
        "exec=sh is declared by the flow",
    );
    let documents = flow("return 1")
        .replace("run =", "collections = { x = { path = \"notes/{a}.yaml\", schema = { type = \"object\" } } }, run =");
    refused(
        "documents that differ",
        archive(|tar| file(tar, "flows/evil.lua", &documents)),
        "documents=notes/{a}.yaml",
    );
    refused("another name", archive(|tar| file(tar, "flows/other.lua", flow("return 1"))), "has the name of its file");
    for wanted in ["../../other/flows/x", "/etc/passwd", "./nowhere", "@nietz/io"] {
        let source = flow(&format!("return require(\"{wanted}\")"));
        let words = wanted.trim_start_matches("./");
        refused(wanted, archive(|tar| file(tar, "flows/evil.lua", &source)), words);
    }
    let includes = flow("return template.render(\"./evil/prompt.md\")");
    refused(
        "an include that leaves",
        archive(|tar| {
            file(tar, "flows/evil.lua", &includes);
            file(tar, "flows/evil/prompt.md", "{% include '../../../secrets.md' %}");
        }),
        "secrets.md",
    );
    refused(
        "an effect at the top level",
        archive(|tar| file(tar, "flows/evil.lua", "print(1)\n".to_owned() + &flow("return 1"))),
        "flows/evil.lua",
    );
    refused(
        "a loop at the top level",
        archive(|tar| file(tar, "flows/evil.lua", "while true do end\n")),
        "flows/evil.lua",
    );
    refused(
        "no pack",
        {
            let mut tar = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
            file(&mut tar, "personas/evil.md", PERSONA);
            tar.into_inner().expect("it ends").finish().expect("it ends")
        },
        "no pack.yaml",
    );
    refused(
        "a newer host",
        {
            let mut tar = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
            file(&mut tar, "pack.yaml", ABOUT.replace("host_api: 1", "host_api: 99"));
            tar.into_inner().expect("it ends").finish().expect("it ends")
        },
        "version 99 of the host API",
    );
}

/// Links inside of a folder or a repository are no better than those in an archive.
#[test]
fn a_folder_and_a_repository_with_links_are_refused() {
    let env = Env::new().file("evil/pack.yaml", ABOUT).file("evil/personas/evil.md", PERSONA);
    std::os::unix::fs::symlink("/etc/passwd", env.path("evil/personas/link.md")).expect("a link can be made");
    let ended = env.nietz(["pack", "add", "evil", "--yes"]).go().exits(4);
    assert!(ended.stderr.contains("a link"), "{}", ended.stderr);
    crate::support::git::init(&env.path("evil"));
    let ended = env.nietz(["pack", "add", "evil#main", "--yes"]).go().exits(4);
    assert!(ended.stderr.contains("a link"), "{}", ended.stderr);
    assert!(!env.path("nietz.lock").exists());
}

/// A repository that is made object by object, so that it holds what no checkout would bring about.
struct Repository<'a>(&'a Env);

impl Repository<'_> {
    fn new(env: &Env) -> Repository<'_> {
        std::fs::create_dir(env.path("repo")).expect("a folder can be made");
        git(&env.path("repo"), ["init", "-q", "--bare"]);
        Repository(env)
    }

    fn git<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> String {
        git(&self.0.path("repo"), arguments)
    }

    fn blob(&self, text: impl AsRef<[u8]>) -> String {
        self.0.write("blob", text);
        self.git(["hash-object", "-w", "../blob"])
    }

    /// Makes a tree of `mode kind object name`.
    fn tree(&self, entries: &[(&str, &str, &str)]) -> String {
        let index = self.0.path("index");
        let _ = std::fs::remove_file(&index);
        let kind = |mode: &str| if mode == "040000" { "tree" } else { "blob" };
        let listed: Vec<String> =
            entries.iter().map(|(mode, object, name)| format!("{mode} {} {object}\t{name}\n", kind(mode))).collect();
        self.0.write("listed", listed.concat());
        let script = "git mktree < ../listed";
        git(&self.0.path("repo"), ["-c", &format!("alias.made=!{script}"), "made"])
    }

    /// Commits the files of a pack, with more in its folder of flows, by a tag; returns the source.
    fn pack(
        &self,
        tag: &str,
        about: &str,
        flow: &str,
        more: &[(&str, &str, &str)],
        top: &[(&str, &str, &str)],
    ) -> String {
        let flow = self.blob(flow);
        let mut flows = vec![("100644", flow.as_str(), "p.lua")];
        flows.extend(more);
        let (flows, about) = (self.tree(&flows), self.blob(about));
        let mut all = vec![("040000", flows.as_str(), "flows"), ("100644", about.as_str(), "pack.yaml")];
        all.extend(top);
        let tree = self.tree(&all);
        let commit = self.git(["commit-tree", &tree, "-m", "harmless\nlocal hidden = 1"]);
        self.git(["tag", "-f", tag, &commit]);
        format!("{}#{tag}", self.0.path("repo").display())
    }
}

const P: &str = "name: p\nversion: 1.0.0\nsummary: s\nlicence: MIT\nhost_api: 1\npermissions: {p: {}}\n";

fn p(body: &str) -> String {
    format!("return require(\"@nietz\").flow {{ name = \"p\", summary = \"s\", run = function()\n{body}\nend }}\n")
}

/// The text of a file of the one installed pack.
fn installed(env: &Env, path: &str) -> Option<String> {
    let pack = std::fs::read_dir(env.home().join("packs")).ok()?.next()?.expect("it can be listed").path();
    std::fs::read_to_string(pack.join(path)).ok()
}

/// What is installed is what the tree of the tag shows: attributes change no text, and leave out no file.
#[test]
fn attributes_of_a_repository_change_nothing_of_what_is_installed() {
    let env = Env::new();
    let repository = Repository::new(&env);
    let attributes = repository.blob("*.lua export-subst text eol=crlf\nside.lua export-ignore\n");
    let side = repository.blob("return 1\n");
    let side = repository.tree(&[("100644", &side, "side.lua")]);
    let flow = format!("-- $Format:%B$\n{}", p("return require('./p/side')"));
    let source =
        repository.pack("v1.0.0", P, &flow, &[("040000", &side, "p")], &[("100644", &attributes, ".gitattributes")]);
    env.nietz(["pack", "add", &source, "--yes"]).go().exits(0);
    assert_eq!(installed(&env, "flows/p.lua"), Some(flow));
    assert_eq!(installed(&env, "flows/p/side.lua").as_deref(), Some("return 1\n"));
}

/// Sizes and counts are looked at before anything is read, however small the repository is.
#[test]
fn bombs_in_git_are_refused_before_they_are_read() {
    let env = Env::new();
    let repository = Repository::new(&env);
    let zeros = repository.blob(vec![0; 64 << 20]);
    let mut deep = repository.blob("x");
    for depth in 0..7 {
        let names: Vec<String> = (0..10).map(|name| format!("f{name}")).collect();
        let mode = if depth == 0 { "100644" } else { "040000" };
        let entries: Vec<(&str, &str, &str)> = names.iter().map(|name| (mode, deep.as_str(), name.as_str())).collect();
        deep = repository.tree(&entries);
    }
    let file = repository.blob("x");
    let up = repository.blob("../../outside");
    for (what, entry, words) in [
        ("a large file", ("100644", zeros.as_str(), "big"), "more than 4 MiB"),
        ("ten million paths", ("040000", deep.as_str(), "data"), "more than 2000 files"),
        ("a link", ("120000", up.as_str(), "link"), "is a link"),
        ("a path of another kind", ("100644", file.as_str(), "back\\slash"), "characters that no path"),
    ] {
        let source = repository.pack("v1.0.0", P, &p("return 1"), &[entry], &[]);
        let ended = env.nietz(["pack", "add", &source, "--yes"]).go().exits(4);
        assert!(ended.stderr.contains(words), "{what}: {}", ended.stderr);
        assert!(installed(&env, "pack.yaml").is_none() && !env.path("nietz.lock").exists(), "{what}");
    }
}

/// A module is what it was when the run began, whoever changes it while the run waits; on resume the change is told.
#[test]
fn a_module_that_is_changed_while_a_run_waits_is_not_read() {
    let env = Env::new();
    let repository = Repository::new(&env);
    let late = repository.blob("return { x = 'good' }\n");
    let late = repository.tree(&[("100644", &late, "late.lua")]);
    let flow = p("require('@nietz/ui').ask({ id = 'q', prompt = '?' }) return require('./other/late').x");
    let source = repository.pack("v1.0.0", P, &flow, &[("040000", &late, "other")], &[]);
    env.nietz(["pack", "add", &source, "--yes"]).go().exits(0);
    let mut running = env.nietz(["run", "p", "--json"]).spawn();
    running.wait_for("asked");
    let pack =
        std::fs::read_dir(env.home().join("packs")).expect("it is there").next().expect("one").expect("it is there");
    std::fs::write(pack.path().join("flows/other/late.lua"), "return { x = 'CHANGED' }").expect("it can be written");
    running.say("hi\n");
    let ended = running.end();
    assert_eq!(ended.result(), "good", "{ended:?}");
    let ended = env.nietz(["run", "p"]).var("NIETZ_RUN", "r2").go().exits(5);
    assert!(ended.stderr.contains("[pack-changed]"), "{ended:?}");
    let ended = env.resume().go().exits(5);
    assert!(ended.stderr.contains("[pack-changed]"), "{ended:?}");
}

/// Names and digests of a lock become parts of paths: what is none is refused, with its line, before any path is made.
#[test]
fn a_lock_with_names_that_lead_elsewhere_is_refused() {
    let digest = "b".repeat(64);
    let locked = |name: &str, version: &str, commit: &str, sha256: &str| {
        serde_json::json!({ "version": 1, "packs": { name: {
            "version": version, "source": "x#v1.0.0", "commit": commit, "sha256": sha256 } } })
        .to_string()
    };
    let commit = "a".repeat(40);
    for (what, lock) in [
        ("a name that leads out", locked("../../x", "1.0.0", &commit, &digest)),
        ("an absolute name", locked("/x", "1.0.0", &commit, &digest)),
        ("a name with a line end", locked("p\nq", "1.0.0", &commit, &digest)),
        ("an empty name", locked("", "1.0.0", &commit, &digest)),
        ("a long name", locked(&"p".repeat(300), "1.0.0", &commit, &digest)),
        ("a version with escapes", locked("p", "1\u{1b}[2J", &commit, &digest)),
        ("an option in place of a commit", locked("p", "1.0.0", "--upload-pack=x", &digest)),
        ("a digest that leads out", locked("p", "1.0.0", &commit, "../../../../../../../../x")),
        ("a short digest", locked("p", "1.0.0", &commit, &digest[..63])),
        ("a digest with a line end", locked("p", "1.0.0", &commit, &format!("{digest}\n"))),
    ] {
        let env = Env::new().file("nietz.lock", lock);
        for verb in [&["pack", "list"][..], &["pack", "add", "--locked"], &["flows"]] {
            let ended = env.nietz(verb.iter().copied()).go().exits(1);
            assert!(ended.stderr.contains("[config-invalid]"), "{what}: {ended:?}");
        }
    }
    let fine = Env::new().file("nietz.lock", locked("p", "1.0.0", &commit, &digest));
    fine.nietz(["pack", "list"]).go().exits(0);
}
