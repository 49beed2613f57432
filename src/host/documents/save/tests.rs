//! A save is all or nothing, never loses what somebody else wrote, and leaves no other files behind.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::super::testing::{collection, slug, store, versioned};
use super::*;

const OLD: &str = "format_version: \"1.0\"\nslug: a\n";

fn current() -> Value {
    json!({"format_version": "1.2", "slug": "a"})
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn what_is_saved_is_shaped_validated_and_loaded_again() {
    let (folder, store) = store();
    let value = json!({"extra": 1, "tags": {}, "score": 10.0, "slug": "a", "format_version": "1.2"});
    let saved = store.save(&versioned(), &slug("a"), value.clone(), &Expect::Absent).unwrap();
    let text = fs::read_to_string(folder.path().join("data/a.yaml")).unwrap();
    assert_eq!(text, "format_version: \"1.2\"\nslug: a\nscore: 10\ntags: []\nextra: 1\n");
    let loaded = store.load(&versioned(), &slug("a")).unwrap().unwrap();
    assert_eq!((loaded.digest, loaded.path), (saved.digest, saved.path));
    assert_eq!(names(&folder.path().join("data")), ["a.yaml"]);
}

#[test]
fn nothing_invalid_is_stored() {
    let (folder, store) = store();
    for (value, pointer) in [
        (json!({"format_version": "1.2", "slug": "a", "score": 101}), "/score"),
        (json!({"format_version": "1.2", "slug": "b"}), "/slug"),
        (json!({"format_version": "1.0", "slug": "a"}), "/format_version"),
        (json!({"slug": "a"}), "/format_version"),
    ] {
        let failure = store.save(&versioned(), &slug("a"), value.clone(), &Expect::Anything).unwrap_err();
        assert_eq!(failure.code, Code::DocumentInvalid);
        assert!(failure.details[0].starts_with(&format!("data/a.yaml: {pointer}: ")), "{failure:?}");
    }
    assert_eq!(names(folder.path()), [""; 0]);
}

#[test]
fn a_file_that_somebody_else_changed_is_not_overwritten() {
    let (folder, store) = store();
    let (notes, key, path) = (versioned(), slug("a"), folder.path().join("data/a.yaml"));
    let first = store.save(&notes, &key, current(), &Expect::Absent).unwrap();
    let next = json!({"format_version": "1.2", "slug": "a", "score": 1});
    let other = "format_version: '1.2'\nslug: a\nscore: 7\n";
    fs::write(&path, other).unwrap();
    for expect in [Expect::Absent, Expect::Digest(first.digest.clone())] {
        let failure = store.save(&notes, &key, next.clone(), &expect).unwrap_err();
        assert!(failure.code == Code::DocumentChanged && failure.hint.unwrap().contains("another name"));
        assert_eq!(store.delete(&notes, &key, &expect).unwrap_err().code, Code::DocumentChanged);
        assert_eq!(fs::read_to_string(&path).unwrap(), other);
    }
    fs::remove_file(&path).unwrap();
    let failure = store.save(&notes, &key, next.clone(), &Expect::Digest(first.digest)).unwrap_err();
    assert!(failure.message.contains("was removed"));
    store.save(&notes, &key, next.clone(), &Expect::Anything).unwrap();
    assert!(store.delete(&notes, &key, &Expect::Anything).unwrap());
    assert!(!store.delete(&notes, &key, &Expect::Anything).unwrap());
    assert_eq!(names(&folder.path().join("data")), [""; 0]);
}

#[test]
fn a_save_that_was_done_already_is_fine() {
    let (_folder, store) = store();
    let first = store.save(&versioned(), &slug("a"), current(), &Expect::Absent).unwrap();
    for expect in [Expect::Absent, Expect::Digest("other".to_owned()), Expect::Anything] {
        assert_eq!(store.save_again(&versioned(), &slug("a"), current(), &expect).unwrap(), first);
    }
}

#[test]
fn a_newer_document_is_never_written_over_and_a_broken_one_may_be() {
    let (folder, store) = store();
    let path = folder.path().join("data/a.yaml");
    fs::create_dir(folder.path().join("data")).unwrap();
    let newer = "format_version: '1.3'\nslug: a\n";
    fs::write(&path, newer).unwrap();
    let expect = Expect::Digest(disk::digest(newer.as_bytes()));
    for expect in [expect, Expect::Anything] {
        let failure = store.save(&versioned(), &slug("a"), current(), &expect).unwrap_err();
        assert_eq!(failure.code, Code::DocumentVersion);
        assert_eq!(fs::read_to_string(&path).unwrap(), newer);
    }
    fs::write(&path, "slug: [").unwrap();
    assert!(store.save(&versioned(), &slug("a"), current(), &Expect::Absent).is_err());
    assert!(store.save(&versioned(), &slug("a"), current(), &Expect::Anything).is_ok());
}

#[test]
fn a_migration_keeps_the_old_file_until_the_new_one_is_safe() {
    let (folder, store) = store();
    let data = folder.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("a.yaml"), OLD).unwrap();
    let loaded = store.load(&versioned(), &slug("a")).unwrap().unwrap();
    let expect = Expect::Digest(loaded.digest);
    assert!(store.save_migrated(&versioned(), &slug("a"), json!({"slug": 3}), &expect).is_err());
    assert_eq!(fs::read_to_string(data.join("a.yaml")).unwrap(), OLD);

    store.save_migrated(&versioned(), &slug("a"), current(), &expect).unwrap();
    assert_eq!(names(&data), ["a.yaml"]);

    // A run that was killed between the two steps left its backup: the repeated save removes it.
    fs::write(data.join("a.yaml.v1.0.bak"), OLD).unwrap();
    store.save_migrated(&versioned(), &slug("a"), current(), &expect).unwrap();
    assert_eq!(names(&data), ["a.yaml"]);
}

#[cfg(unix)]
#[test]
fn the_mode_of_a_file_is_kept_and_a_new_one_has_the_usual() {
    use std::os::unix::fs::PermissionsExt as _;
    let (folder, store) = store();
    let mode = |name: &str| fs::metadata(folder.path().join(name)).unwrap().permissions().mode() & 0o777;
    fs::write(folder.path().join("usual"), "").unwrap();
    store.save(&collection("{slug}.yaml"), &slug("a"), json!({"slug": "a"}), &Expect::Absent).unwrap();
    assert_eq!(mode("a.yaml"), mode("usual"));
    fs::set_permissions(folder.path().join("a.yaml"), fs::Permissions::from_mode(0o640)).unwrap();
    store.save(&collection("{slug}.yaml"), &slug("a"), json!({"slug": "a", "score": 1}), &Expect::Anything).unwrap();
    assert_eq!(mode("a.yaml"), 0o640);
}

#[test]
fn a_replacement_that_fails_at_its_last_step_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    // No user, not even root, can rename a file over a folder that is not empty; a full disk fails no later than that.
    let path = folder.path().join("a.yaml");
    fs::create_dir_all(path.join("old")).unwrap();
    let failure = disk::replace(&path, b"new").unwrap_err();
    assert!(failure.code == Code::DiskFailed && failure.message.contains("a.yaml"), "{failure}");
    assert_eq!((names(folder.path()), names(&path)), (vec!["a.yaml".to_owned()], vec!["old".to_owned()]));
}

/// Adds one to a document's score; tries again until no other process saves in between.
fn count_up(store: &Store, times: usize) {
    let (notes, key) = (collection("{slug}.yaml"), slug("a"));
    for _ in 0..times {
        loop {
            let loaded = store.load(&notes, &key).unwrap().unwrap();
            let mut value = loaded.value;
            value["score"] = json!(value["score"].as_u64().unwrap() + 1);
            match store.save(&notes, &key, value.clone(), &Expect::Digest(loaded.digest)) {
                Ok(_) => break,
                Err(failure) => assert_eq!(failure.code, Code::DocumentChanged),
            }
        }
    }
}

const FOLDER: &str = "NIETZ_TEST_COUNT_UP";

/// The other process of the test below; on its own it does nothing.
#[test]
fn another_process_counts_up() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        count_up(&Store::new(Path::new(&folder)).unwrap(), 15);
    }
}

#[test]
fn threads_and_processes_never_lose_an_update() {
    let (folder, store) = store();
    let value = json!({"slug": "a", "score": 0});
    store.save(&collection("{slug}.yaml"), &slug("a"), value.clone(), &Expect::Absent).unwrap();
    let mut processes: Vec<_> = (0..2)
        .map(|_| {
            std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "host::documents::save::tests::another_process_counts_up"])
                .env(FOLDER, folder.path())
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| count_up(&store, 15));
        }
    });
    for process in &mut processes {
        assert!(process.wait().unwrap().success());
    }
    let loaded = store.load(&collection("{slug}.yaml"), &slug("a")).unwrap().unwrap();
    assert_eq!(loaded.value["score"], 60);
    assert_eq!(names(folder.path()), ["a.yaml"]);
}
