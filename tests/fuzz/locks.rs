//! The promise: a lock, and what the user trusts, is as it was written, or refused with its file and line; its names and
//! digests, which become parts of paths, lead nowhere else.

use nietz::error::Failure;
use nietz::pack::lock::Lockfile;
use nietz::pack::trust::TrustFile;
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, prop_oneof};

use super::draw::{Bytes, mutated};
use super::{holds, names_a_place};

const LOCK: &str = "# Which packs this project uses, and exactly which content. `nietz pack` writes it; commit it.
version: 1
packs:
  quotes-de:
    version: 1.2.0
    source: \"https://example.org/quotes.git#v1.2.0\"
    commit: 0123456789abcdef0123456789abcdef01234567
    sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
  rounds:
    version: 0.9.1
    source: ../rounds
    sha256: 60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752
";
const TRUST: &str = "version: 1
folders:
  /home/u/project: [\"exec=cargo test\", git]
  /home/u/other: [\"*\"]
packs:
  9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08:
    pack: quotes-de
    flows:
      quiz: [llm, documents=notes/{a}.yaml]
";

/// A version that is not known is said of the file as a whole.
#[track_caller]
fn says_where(failure: &Failure, file: &str, bytes: &[u8]) {
    if !failure.message.contains(&format!("{file}: version ")) {
        names_a_place(failure, file, bytes);
    }
    assert!(failure.hint.is_some(), "it does not say what to do: {failure:?}");
}

#[track_caller]
fn a_lock_is_as_written_or_refused(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    std::fs::write(Lockfile::path(folder.path()), bytes).expect("it can be written");
    match Lockfile::read(folder.path()) {
        Ok(lock) => {
            for (name, locked) in &lock.packs {
                let place = locked.folder(folder.path(), name);
                assert_eq!(place.parent(), Some(folder.path()), "{}", place.display());
                let name = place.file_name().and_then(|name| name.to_str()).expect("it has a name");
                assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'), "{name}");
            }
            lock.write(folder.path()).expect("it can be written");
            assert_eq!(Lockfile::read(folder.path()).expect("it was written"), lock);
            let left: Vec<_> = std::fs::read_dir(folder.path()).expect("it is there").collect();
            assert_eq!(left.len(), 1, "{left:?}");
        }
        Err(failure) => {
            says_where(&failure, "nietz.lock", bytes);
            assert_eq!(std::fs::read(Lockfile::path(folder.path())).expect("it is there"), bytes, "it was touched");
        }
    }
}

/// Locks whose names and values are drawn.
fn locks() -> impl Strategy<Value = Bytes> {
    let word = prop_oneof![
        "[a-z-]{1,8}",
        "[./~a-z]{1,12}",
        Just("../../x".to_owned()),
        Just("a".repeat(64)),
        Just("A".repeat(64)),
        "\\PC{0,20}",
        Just("&a [*a]".to_owned()),
        Just("\"\\u0000/..\"".to_owned()),
    ];
    let field = prop_oneof![Just("version"), Just("source"), Just("sha256"), Just("commit"), Just("more")];
    let pack = (word.clone(), vec((field, word), 0..2));
    vec(pack, 0..4).prop_map(|packs| {
        let mut text = "version: 1\npacks:\n".to_owned();
        for (name, fields) in packs {
            text.push_str(&format!("  {name}:\n"));
            // What is not drawn is as it should be.
            let honest = [("version", "1.0.0".to_owned()), ("source", "here".to_owned()), ("sha256", "a".repeat(64))];
            let missing = honest.iter().filter(|(field, _)| fields.iter().all(|(drawn, _)| drawn != field));
            missing.for_each(|(field, value)| text.push_str(&format!("    {field}: {value}\n")));
            fields.iter().for_each(|(field, value)| text.push_str(&format!("    {field}: {value}\n")));
        }
        Bytes(text.into_bytes())
    })
}

#[test]
fn a_lock_of_any_text_is_as_written_or_refused_and_leads_nowhere_else() {
    let changed = mutated(vec![LOCK.as_bytes().to_vec()]).prop_map(|(_, bytes)| bytes);
    holds("locks", prop_oneof![changed, locks()], |bytes| a_lock_is_as_written_or_refused(&bytes.0));
}

#[test]
fn the_trust_of_any_text_is_as_written_or_refused() {
    holds("trust", mutated(vec![TRUST.as_bytes().to_vec()]), |(_, bytes)| {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let file = TrustFile { path: folder.path().join("trust.yaml"), legacy: folder.path().join("grants.yaml") };
        std::fs::write(&file.path, &bytes.0).expect("it can be written");
        match file.read() {
            Ok(trust) => {
                file.change(|_| {}).expect("it can be written");
                assert_eq!(file.read().expect("it was written"), trust);
            }
            Err(failure) => {
                says_where(&failure, "trust.yaml", &bytes.0);
                let changed = file.change(|trust| trust.add_folder("/", ["*".to_owned()].into()));
                assert!(
                    changed.is_err() && std::fs::read(&file.path).expect("it is there") == bytes.0,
                    "it was touched"
                );
            }
        }
    });
}

#[test]
fn what_was_found_by_chance_is_as_written_or_refused() {
    for case in [
        &b""[..],
        b"\0",
        b"version: 2\npacks: {}\n",
        b"version: 1\npacks: null\n",
        b"[]",
        b"version: 1\r\npacks: {}\r\n",
    ] {
        a_lock_is_as_written_or_refused(case);
    }
}
