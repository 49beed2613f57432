//! The promise: whatever an archive holds, it is taken in as it is or refused: nothing is written outside of the folder that
//! is being filled, nothing but plain files and folders within it, and what is refused leaves nothing behind.

use std::io::{Cursor, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use nietz::error::Code;
use nietz::pack::{intake, seal};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::select;
use tar::{Builder, EntryType, Header};

use super::draw::{Bytes, mutated, text};
use super::holds;
use crate::support::env::Env;

/// The most files and folders of a pack, and bytes.
const FILES: usize = 2_000;
const ALL: u64 = 32 << 20;

/// One entry of an archive.
#[derive(Clone, Debug)]
struct Entry {
    path: String,
    kind: u8,
    mode: u32,
    content: Bytes,
    link: String,
    /// A size that the header claims.
    claimed: Option<u64>,
    /// How a path is said that is no part of the header.
    long: u8,
}

fn file(path: &str, content: &str) -> Entry {
    let content = Bytes(content.as_bytes().to_vec());
    Entry { path: path.to_owned(), kind: b'0', mode: 0o644, content, link: String::new(), claimed: None, long: 0 }
}

/// A pack that can be added.
fn honest() -> Vec<Entry> {
    let about = "name: odd\nversion: 1.0.0\nsummary: Odd\nlicence: MIT\nhost_api: 1\n";
    let flow = "return require(\"@nietz\").flow { name = \"odd\", summary = \"Odd\", run = function() end }\n";
    vec![
        file("pack.yaml", about),
        file("personas/odd.md", "---\nname: Odd\n---\nYou are odd.\n"),
        file("flows/odd.lua", flow),
    ]
}

fn header(entry: &Entry, path: &[u8], kind: u8, size: u64) -> Header {
    let mut header = Header::new_ustar();
    let length = path.len().min(100);
    header.as_mut_bytes()[..length].copy_from_slice(&path[..length]);
    header.set_entry_type(EntryType::new(kind));
    header.set_mode(entry.mode);
    header.set_size(size);
    let length = entry.link.len().min(100);
    header.as_mut_bytes()[157..157 + length].copy_from_slice(&entry.link.as_bytes()[..length]);
    header.set_cksum();
    header
}

fn archive(entries: &[Entry]) -> Vec<u8> {
    let mut tar = Builder::new(Vec::new());
    for entry in entries {
        let path = entry.path.as_bytes();
        let mut add = |header: &Header, content: &[u8]| tar.append(header, content).expect("memory is there");
        match entry.long {
            1 => add(&header(entry, b"././@LongLink", b'L', path.len() as u64 + 1), &[path, b"\0"].concat()),
            2 => {
                let record = format!("path={}\n", entry.path);
                let length = (1..9)
                    .map(|digits| record.len() + 1 + digits)
                    .find(|all| all.to_string().len() + record.len() + 1 == *all);
                let record = format!("{} {record}", length.unwrap_or_default());
                add(&header(entry, b"pax", b'x', record.len() as u64), record.as_bytes());
            }
            _ => {}
        }
        let size = entry.claimed.unwrap_or(entry.content.0.len() as u64);
        add(&header(entry, path, entry.kind, size), &entry.content.0);
    }
    tar.into_inner().expect("memory is there")
}

fn entry() -> impl Strategy<Value = Entry> {
    let part = select(vec![
        "flows",
        "flows",
        "personas",
        "personas",
        "quotes",
        "tests",
        "..",
        ".",
        "",
        "pack.yaml",
        "odd.md",
        "ODD.md",
        "odd.lua",
        "a",
        "\u{e9}",
        "e\u{301}",
        "README.md",
        ".git",
        "~",
        "x\\y",
        "\u{1b}[2J",
        "\n",
        "\0",
        "link",
        "con",
        " ",
        "-rf",
    ]);
    let path = prop_oneof![
        6 => vec(part, 1..5).prop_map(|parts| parts.join("/")),
        1 => text(),
        1 => (1..40_usize, 1..300_usize).prop_map(|(depth, length)| vec!["d".repeat(length); depth].join("/")),
        1 => Just("/etc/passwd".to_owned()),
    ];
    let kind = prop_oneof![6 => Just(b'0'), 2 => Just(b'5'), 1 => Just(b'\0'), 3 => select(&b"12346789gxLKSDVMZ"[..]), 1 => any::<u8>()];
    let content = prop_oneof![
        4 => text().prop_map(|text| Bytes(text.into_bytes())),
        1 => Just(Bytes(vec![0; 100_000])),
        1 => Just(Bytes(b"\x1bLuaS\0".to_vec())),
    ];
    let link = prop_oneof![2 => Just(String::new()), 1 => Just("/tmp".to_owned()), 1 => Just("../..".to_owned())];
    let mode = select(vec![0o644, 0o755, 0o4755, 0o2755, 0o1777, 0, 0o777_7777]);
    let claimed = prop_oneof![8 => Just(None), 1 => (0..2_000_u64).prop_map(Some), 1 => select(vec![1 << 40, u64::MAX >> 29, 5 << 20]).prop_map(Some)];
    (path, kind, mode, content, link, claimed, 0..5_u8).prop_map(|(path, kind, mode, content, link, claimed, long)| {
        Entry { path, kind, mode, content, link, claimed, long }
    })
}

/// Archives: odd entries in an honest pack, or an honest one changed; packed or not.
fn archives() -> impl Strategy<Value = Bytes> {
    let odd = || {
        vec(entry(), 0..6).prop_map(|mut entries| {
            entries.splice(0..0, honest());
            archive(&entries)
        })
    };
    let changed = prop_oneof![
        mutated(vec![archive(&honest())]).prop_map(|(_, bytes)| bytes.0),
        // A header is read by fields, which a change anywhere seldom hits.
        (odd(), vec((0..512_usize, any::<u8>()), 1..4), any::<proptest::sample::Index>()).prop_map(
            |(mut bytes, changes, which)| {
                let start = which.index(bytes.len() / 512) * 512;
                changes.iter().for_each(|(at, byte)| bytes[start + at] = *byte);
                if let Some(block) = bytes.get_mut(start..start + 512) {
                    let sum: u32 =
                        block[..148].iter().chain(&block[156..]).map(|byte| u32::from(*byte)).sum::<u32>() + 8 * 32;
                    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
                }
                bytes
            }
        ),
    ];
    prop_oneof![odd(), changed].prop_map(Bytes)
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(bytes).and_then(|()| packed.finish()).expect("memory is there")
}

/// Everything below a folder: plain files and folders alone, without rights that a pack has none of, and not too much.
#[track_caller]
fn is_plain(folder: &Path) {
    let (mut count, mut bytes) = (0, 0);
    for entry in walkdir::WalkDir::new(folder).min_depth(1) {
        let entry = entry.expect("it can be read");
        let about = entry.metadata().expect("it can be looked at");
        assert!(about.is_file() || about.is_dir(), "{} is not a plain file", entry.path().display());
        assert!(about.permissions().mode() & 0o7022 == 0 && (about.is_dir() || about.nlink() == 1), "{about:?}");
        count += 1;
        bytes += if about.is_file() { about.len() } else { 0 };
    }
    // Folders that are named in paths alone come to those that are counted.
    assert!(count <= FILES * 16 && bytes <= ALL, "{count} files, {bytes} bytes");
}

fn names(folder: &Path) -> Vec<String> {
    let all = std::fs::read_dir(folder).expect("it is there");
    let mut all: Vec<String> =
        all.map(|entry| entry.expect("it can be read").file_name().to_string_lossy().into_owned()).collect();
    all.sort();
    all
}

#[track_caller]
fn is_taken_in_or_refused(reader: impl Read) {
    let root = tempfile::tempdir().expect("a temporary folder can be made");
    let (raw, pack) = (root.path().join("a/raw"), root.path().join("a/pack"));
    [&raw, &pack].iter().for_each(|folder| std::fs::create_dir_all(folder).expect("a folder can be made"));
    let taken = intake::unpack_archive(reader, &raw);
    is_plain(&raw);
    let taken = taken.and_then(|()| intake::copy_folder(&intake::top(&raw), &pack));
    is_plain(&pack);
    if let Err(failure) = &taken {
        assert_eq!(failure.code, Code::PackInvalid, "{failure:?}");
    }
    assert_eq!(
        (names(root.path()), names(&root.path().join("a"))),
        (vec!["a".to_owned()], vec!["pack".to_owned(), "raw".to_owned()])
    );
    if taken.is_ok() {
        seal::digest(&pack).expect("it can be read");
        assert!(names(&pack).iter().all(|name| intake::is_part(name)));
    }
}

#[test]
fn an_archive_of_any_entries_is_taken_in_or_refused_and_nothing_leaves_its_folder() {
    holds("packs", archives(), |bytes| is_taken_in_or_refused(Cursor::new(&bytes.0)));
}

#[test]
fn a_packed_archive_of_any_bytes_is_taken_in_or_refused() {
    holds("packs_packed", mutated(vec![packed(&archive(&honest()))]), |(_, bytes)| {
        is_taken_in_or_refused(GzDecoder::new(Cursor::new(&bytes.0)));
    });
}

/// The same through the whole program: what is refused leaves neither a lock nor a pack nor a stray file.
#[test]
fn an_archive_is_added_whole_or_leaves_nothing_behind() {
    holds("packs_added", archives(), |bytes| {
        let env = Env::new();
        let before = names(&env.home());
        let place = env.home().join("odd.tar.gz");
        std::fs::write(&place, packed(&bytes.0)).expect("it can be written");
        let ended = env.nietz(["pack", "add", &place.display().to_string(), "--yes"]).go();
        assert!(ended.signal.is_none() && matches!(ended.code, Some(0 | 4)), "{ended:?}");
        std::fs::remove_file(&place).expect("it is there");
        let installed = env.home().join("packs");
        if ended.code == Some(0) {
            assert!(
                names(&installed).len() == 1 && env.documents().into_keys().eq(["nietz.lock"]),
                "{:?}",
                env.documents()
            );
            is_plain(&installed);
            env.nietz(["pack", "list"]).go().exits(0);
        } else {
            assert!(env.documents().is_empty() && (!installed.exists() || names(&installed).is_empty()), "{ended:?}");
            let new: Vec<String> = names(&env.home()).into_iter().filter(|name| !before.contains(name)).collect();
            assert!(new.iter().all(|name| name == "packs" || name == "packs.lock"), "{new:?}");
        }
    });
}

#[test]
fn an_honest_archive_is_taken_in_as_it_is() {
    let root = tempfile::tempdir().expect("a temporary folder can be made");
    intake::unpack_archive(Cursor::new(archive(&honest())), root.path()).expect("it is honest");
    for entry in honest() {
        assert_eq!(std::fs::read(root.path().join(&entry.path)).expect("it is there"), entry.content.0);
    }
}
