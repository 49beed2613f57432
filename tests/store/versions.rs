//! The promise: nietz's functions do the same on each version of the queue that `store check` accepts, however it came there, and the
//! queue's scripts are those that its authors made.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::children::{Team, end};
use super::hosts::on;
use super::{held, messages, queue, take};
use crate::cli::children;
use crate::support::env::Env;
use crate::support::postgres::{self, Database, Server, binaries};

/// The first version, of the crate `pgmq` 0.34.0-alpha.6, whose control file says 1.12.0, and what makes the next one of it.
const SCRIPTS: [&str; 2] = [
    "fb58c48626f068d170f37fa012ffbe5aee59ad209e9d3ac742d9dce2f3bb2993",
    "e494ff99e02ff6f4e886ee257421145cb510ad4f950835480896437a7fab41d2",
];
/// As its authors have it, but for the version that is made where none is named.
const CONTROL: &str =
    "comment = 'A queue'\ndefault_version = '1.99.0'\nschema = 'pgmq'\nrelocatable = false\nsuperuser = false\n";

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn migrated<'a>(database: Database<'a>, upgraded: bool) -> Database<'a> {
    let mut session = database.session();
    let queue = postgres::queue().into_iter().take(if upgraded { usize::MAX } else { 1 });
    for file in queue.chain(postgres::migrations()) {
        session.get(&format!("BEGIN; {}; COMMIT", read(&file)));
    }
    session.get("SELECT nietz.workspace('team', true)");
    database
}

/// Whether it is the version that came last.
fn is_newest(database: &Database<'_>) -> bool {
    let newest = "SELECT count(*) FROM pg_attribute WHERE attname = 'default_partition_length'";
    database.session().get(newest) == "1"
}

#[test]
fn each_accepted_version_of_the_queue_carries_runs() {
    let Some(server) = postgres::shared() else { return };
    for upgraded in [false, true] {
        let database = migrated(server.empty_database(), upgraded);
        let mut session = database.session();
        assert_eq!(is_newest(&database), upgraded, "it is the version that is meant");
        let (run, claim) = held(&mut session, "r1");
        let parked = format!("SELECT nietz.park({run}, {claim}, 2, '{{wait}}', '[{{\"key\": \"k\"}}]', '{{}}')");
        assert_eq!(session.get(&parked), "t");
        assert_eq!(session.get(&format!("SELECT result FROM nietz.answer({run}, 'k', '1')")), "queued");
        let (_, claim) = take(&mut session, "w1").expect("it goes on");
        assert_eq!(session.get(&format!("SELECT nietz.beat({run}, {claim}, 15)")), "t");
        session.get(&format!("SELECT nietz.release({run}, {claim})"));
        let (_, claim) = take(&mut session, "w1").expect("it goes on");
        session.get(&format!("SELECT nietz.finish({run}, {claim}, 3, '{{end}}', 'done', '{{}}')"));
        queue(&mut session, "r2");
        assert_eq!(session.get("SELECT tag, length, visible FROM nietz.queue_metrics(1)"), "|1|1");
        assert_eq!(messages(&mut session), "1");
    }
}

#[test]
fn the_scripts_of_the_queue_are_unchanged() {
    for (file, digest) in postgres::queue().iter().zip(SCRIPTS) {
        let printed = Command::new("sha256sum").arg(file).output().expect("it is on every Debian");
        assert!(String::from_utf8_lossy(&printed.stdout).starts_with(digest), "{}", file.display());
    }
    assert_eq!(postgres::queue().len(), SCRIPTS.len());
}

fn store(database: &Database<'_>, verb: &str) -> String {
    on(database, Env::new()).nietz(["store", verb]).go().exits(0).stdout
}

/// What a nietz without the later script has made, with runs in it, is brought up by the next `migrate`, once.
#[test]
fn a_queue_of_an_earlier_script_is_upgraded_with_what_is_in_it() {
    let Some(server) = postgres::shared() else { return };
    let database = migrated(server.empty_database(), false);
    let mut session = database.session();
    for (at, file) in postgres::migrations().iter().enumerate() {
        let name = file.file_stem().expect("a script has a name").to_string_lossy();
        session.get(&format!("INSERT INTO nietz.migration VALUES ({}, '{name}', 1, 'an earlier one')", at + 1));
    }
    session.get("INSERT INTO nietz.engine VALUES ('pgmq', '1.12.0', 'script')");
    queue(&mut session, "r1");
    std::thread::scope(|scope| {
        let each: Vec<_> = (0..3).map(|_| scope.spawn(|| store(&database, "migrate"))).collect();
        let said: Vec<String> = each.into_iter().map(|one| one.join().expect("it does not panic")).collect();
        assert_eq!(said.iter().filter(|said| said.contains("pgmq 1.13.0")).count(), 1, "{said:?}");
    });
    assert!(is_newest(&database));
    assert!(store(&database, "check").contains("pgmq 1.13.0 (script)"));
    assert!(take(&mut session, "w1").is_some(), "what was in the queue is there");
    // A queue that somebody else's script has made is theirs.
    session.get("UPDATE nietz.engine SET version = '1.12.0', way = 'extension'");
    assert!(!store(&database, "migrate").contains("pgmq"));
}

/// The programs and files of a server in a folder of their own, where an extension can be put that nobody else sees. Programs find their
/// files from where they are themselves, so they are copies.
fn installation(folder: &Path) -> Option<PathBuf> {
    let binaries = binaries()?;
    let version = binaries.parent()?.file_name()?.to_str()?.to_owned();
    let (lib, share) =
        (PathBuf::from("/usr/lib/postgresql").join(&version), PathBuf::from("/usr/share/postgresql").join(&version));
    if binaries != lib.join("bin") || !share.join("extension").is_dir() {
        postgres::skip("the files of this Postgres are not where Debian's are");
        return None;
    }
    let (own_lib, own_share) = (folder.join(lib.strip_prefix("/").ok()?), folder.join(share.strip_prefix("/").ok()?));
    std::fs::create_dir_all(own_lib.join("bin")).expect("a folder can be made");
    for program in ["postgres", "initdb", "pg_isready"] {
        std::fs::copy(binaries.join(program), own_lib.join("bin").join(program)).expect("it can be copied");
    }
    symlink(lib.join("lib"), own_lib.join("lib")).expect("a link can be made");
    std::fs::create_dir_all(own_share.join("extension")).expect("a folder can be made");
    for (from, into) in [(share.clone(), own_share.clone()), (share.join("extension"), own_share.join("extension"))] {
        for entry in
            std::fs::read_dir(from).expect("it is there").flatten().filter(|entry| entry.file_name() != "extension")
        {
            symlink(entry.path(), into.join(entry.file_name())).expect("a link can be made");
        }
    }
    let extension = own_share.join("extension");
    let [first, later]: [PathBuf; 2] = postgres::queue().try_into().expect("there are two");
    std::fs::write(extension.join("pgmq.control"), CONTROL).expect("it can be written");
    std::fs::copy(first, extension.join("pgmq--1.12.0.sql")).expect("it can be copied");
    std::fs::copy(later, extension.join("pgmq--1.12.0--1.13.0.sql")).expect("it can be copied");
    // A version that nobody has tried, which the administrator would get by default.
    std::fs::write(extension.join("pgmq--1.99.0.sql"), "SELECT 1;").expect("it can be written");
    Some(own_lib.join("bin"))
}

#[test]
fn where_the_extension_is_installed_it_is_taken_in_a_version_that_was_tried() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("it is ours");
    let Some(own) = installation(folder.path()) else { return };
    let server = Server::of_binaries(own);
    let database = server.empty_database();
    let said = on(&database, Env::new()).nietz(["store", "migrate"]).go().exits(0).stdout;
    assert!(said.contains("extension pgmq 1.13.0"), "{said}");
    assert!(store(&database, "check").contains("pgmq 1.13.0 (extension)"));
    assert_eq!(database.session().get("SELECT extversion FROM pg_extension WHERE extname = 'pgmq'"), "1.13.0");
    assert!(!store(&database, "migrate").contains("pgmq"), "once is enough");
    database.session().get("SELECT nietz.workspace('team', true); SELECT nietz.sign(1, 'folder', '[\"*\"]')");
    let team = Team { database, server: children::service(None) };
    let env = team.machine();
    team.queue(&env, &[]);
    let worker = team.worker(&env, &["--parallel", "2"]);
    team.check(&env);
    end(worker);

    // Its administrator brings it to another one.
    team.ask("DROP EXTENSION pgmq CASCADE; CREATE EXTENSION pgmq VERSION '1.99.0'");
    let refused = on(&team.database, Env::new()).nietz(["store", "check"]).go();
    assert!(refused.code != Some(0) && refused.stderr.contains("pgmq 1.99.0 (extension)"), "{refused:?}");
}
