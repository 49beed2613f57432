//! A server of Postgres for tests: Debian's, in a temporary folder, as an ordinary user; one for a test process, with a database for
//! each test. It ends with the process, also when that is killed: its shell reads from a pipe that the process holds.
//!
//! `NIETZ_TEST_POSTGRES` names the folder of the binaries, where they are not Debian's; with the value `needed` tests fail that
//! otherwise say SKIPPED (`.ci/run` sets it).

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use tokio_postgres::{Client, NoTls, SimpleQueryMessage, Statement};

/// The folder of the migrations.
const MIGRATIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/store/postgres/sql");

const SCRIPT: &str = include_str!("postgres.sh");

/// A server that runs, until this value is dropped.
pub(crate) struct Server {
    folder: PathBuf,
    port: u16,
    is_near: bool,
    shell: Mutex<Shell>,
    databases: AtomicUsize,
}

struct Shell {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

/// A database with nietz's tables and the workspace `team`, whose id is 1.
pub(crate) struct Database<'a> {
    pub(crate) server: &'a Server,
    pub(crate) name: String,
}

/// A connection that is used by one thread.
pub(crate) struct Session {
    runtime: tokio::runtime::Runtime,
    client: Client,
    append: Option<Statement>,
}

/// Returns the server that all tests of this process share, or says that there is none.
pub(crate) fn shared() -> Option<&'static Server> {
    static SHARED: OnceLock<Option<Server>> = OnceLock::new();
    SHARED.get_or_init(|| Server::start(&[])).as_ref()
}

/// Returns a database of the shared server, or says that there is none.
pub(crate) fn database() -> Option<Database<'static>> {
    shared().map(Server::database)
}

impl Server {
    /// Starts a server with these settings beside those of all, for who stops or kills it. None, after saying so, where Postgres is not
    /// installed.
    pub(crate) fn start(settings: &[&str]) -> Option<Server> {
        // Free now, and nobody else asks for it by number.
        let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        Server::by(&[], ("127.0.0.1", free.expect("the loopback is there").port()), settings)
    }

    /// As [`Server::start`], with other programs than those of all; its databases have nothing in them.
    pub(crate) fn of_binaries(binaries: PathBuf) -> Server {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        Server::by_binaries(binaries, &[], ("127.0.0.1", free.expect("the loopback is there").port()), &[])
    }

    /// As [`Server::start`], by way of another program and at this address.
    pub(crate) fn by(before: &[&str], place: (&str, u16), settings: &[&str]) -> Option<Server> {
        let Some(binaries) = binaries() else {
            skip("there is no Postgres here (apt-get install postgresql)");
            return None;
        };
        let server = Server::by_binaries(binaries, before, place, settings);
        server.database_of_all();
        Some(server)
    }

    fn by_binaries(binaries: PathBuf, before: &[&str], (address, port): (&str, u16), settings: &[&str]) -> Server {
        let mut words: Vec<OsString> = before.iter().map(OsString::from).collect();
        // It would refuse to start as root.
        if rustix::process::geteuid().is_root() {
            words.extend(["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"].map(OsString::from));
        }
        words.extend(["/bin/sh", "-c", SCRIPT, "sh"].map(OsString::from));
        words.extend([binaries.into_os_string(), address.into(), port.to_string().into()]);
        // A server that is killed here loses nothing: the system that has its writes goes on.
        let usual = ["fsync=off", "max_connections=150", "shared_buffers=32MB", "autovacuum_naptime=5s"];
        words.extend(usual.iter().chain(settings).map(OsString::from));
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        Server::of(command, port, before.is_empty())
    }

    fn of(mut command: Command, port: u16, is_near: bool) -> Server {
        // Whatever ends the tests by a signal to their group leaves it to the pipe to end the server.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0).current_dir("/");
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        let mut child = command.spawn().expect("a shell starts");
        let mut from = BufReader::new(child.stdout.take().expect("it was asked for"));
        let mut folder = String::new();
        from.read_line(&mut folder).expect("it can be read");
        assert!(!folder.is_empty(), "no server could be made");
        let to = child.stdin.take();
        let shell = Mutex::new(Shell { child, to, from });
        let server =
            Server { folder: PathBuf::from(folder.trim_end()), port, is_near, shell, databases: AtomicUsize::new(0) };
        server.tell("start");
        server
    }

    /// Has the server started, killed, stopped, frozen or thawed.
    pub(crate) fn tell(&self, word: &str) {
        let mut shell = self.shell.lock().unwrap_or_else(PoisonError::into_inner);
        let to = shell.to.as_mut().expect("it is open until the end");
        writeln!(to, "{word}").expect("the shell reads");
        let mut said = String::new();
        shell.from.read_line(&mut said).expect("it can be read");
        assert_eq!(said, "ok\n", "the server could not {word}");
    }

    fn database_of_all(&self) {
        let mut session = self.session("postgres");
        session.say("CREATE DATABASE nietz").expect("a new server makes a database");
        let mut session = self.session("nietz");
        for file in queue().into_iter().chain(migrations()) {
            let sql = std::fs::read_to_string(&file).expect("it was listed");
            session.say(&format!("BEGIN; {sql}; COMMIT")).unwrap_or_else(|code| panic!("{}: {code}", file.display()));
        }
        // As `nietz store migrate` notes it; a test holds that to be the same.
        for (at, file) in migrations().iter().enumerate() {
            let (number, name) = (at + 1, file.file_stem().expect("a script has a name").to_string_lossy());
            let note = format!("INSERT INTO nietz.migration VALUES ({number}, '{name}', {number}, 'a test')");
            session.say(&note).expect("its table is there");
        }
        session.say("INSERT INTO nietz.engine VALUES ('pgmq', '1.13.0', 'script')").expect("its table is there");
        session.say("SELECT nietz.workspace('team', true)").expect("the owner makes workspaces");
    }

    /// Makes a database that has been migrated.
    pub(crate) fn database(&self) -> Database<'_> {
        let name = format!("test{}", self.databases.fetch_add(1, Ordering::SeqCst));
        let mut session = self.session("postgres");
        // Two copies of one database at once are refused for a moment.
        let copied = (0..100).any(|_| session.say(&format!("CREATE DATABASE {name} TEMPLATE nietz")).is_ok());
        assert!(copied, "a database can be made");
        Database { server: self, name }
    }

    /// Makes a database with nothing in it.
    pub(crate) fn empty_database(&self) -> Database<'_> {
        let name = format!("empty{}", self.databases.fetch_add(1, Ordering::SeqCst));
        self.session("postgres").say(&format!("CREATE DATABASE {name}")).expect("a database can be made");
        Database { server: self, name }
    }

    /// Removes a database, for who makes many.
    pub(crate) fn drop_database(&self, database: &Database<'_>) {
        let drop = format!("DROP DATABASE {} WITH (FORCE)", database.name);
        self.session("postgres").say(&drop).expect("it can be removed");
    }

    fn session(&self, database: &str) -> Session {
        Session::open(&self.url_of("nietz", database)).expect("the server takes connections")
    }

    fn url_of(&self, role: &str, database: &str) -> String {
        // A server in another network is reached by its socket.
        let host =
            if self.is_near { "127.0.0.1".to_owned() } else { self.folder.display().to_string().replace('/', "%2F") };
        format!("postgres://{role}@{host}:{}/{database}", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let shell = self.shell.get_mut().unwrap_or_else(PoisonError::into_inner);
        drop(shell.to.take());
        let _ = shell.child.wait();
    }
}

impl Database<'_> {
    /// The address of the server, for the role that owns all.
    pub(crate) fn url(&self) -> String {
        self.url_as("nietz")
    }

    pub(crate) fn url_as(&self, role: &str) -> String {
        self.server.url_of(role, &self.name)
    }

    /// The address of the server as another machine knows it.
    pub(crate) fn url_at(&self, address: &str) -> String {
        format!("postgres://nietz@{address}:{}/{}?sslmode=disable", self.server.port, self.name)
    }

    pub(crate) fn session(&self) -> Session {
        Session::open(&self.url()).expect("the server takes connections")
    }

    /// Makes a role that may connect, with what it may do in the workspace with this id, and connects as it.
    pub(crate) fn role(&self, name: &str, workspace: i32, kinds: &[&str]) -> Session {
        let role = format!("{name}_{}", self.name);
        let mut owner = self.session();
        owner.say(&format!("CREATE ROLE {role} LOGIN")).expect("the owner makes roles");
        for kind in kinds {
            owner.say(&format!("SELECT nietz.admit({workspace}, '{role}', '{kind}')")).expect("the owner admits");
        }
        Session::open(&self.url_as(&role)).expect("the role may connect")
    }
}

impl Session {
    /// Connects; the failure is a SQLSTATE, or a sentence.
    pub(crate) fn open(url: &str) -> Result<Session, String> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
        let (client, connection) =
            runtime.block_on(tokio_postgres::connect(url, NoTls)).map_err(|error| state(&error))?;
        runtime.spawn(async move { drop(connection.await) });
        Ok(Session { runtime, client, append: None })
    }

    /// Runs SQL and returns its rows: columns with `|` between them, rows with newlines, null as nothing. The failure is a SQLSTATE.
    pub(crate) fn say(&mut self, sql: &str) -> Result<String, String> {
        let messages = self.runtime.block_on(self.client.simple_query(sql)).map_err(|error| state(&error))?;
        let mut rows = Vec::new();
        for message in messages {
            if let SimpleQueryMessage::Row(row) = message {
                let columns: Vec<&str> = (0..row.len()).map(|at| row.get(at).unwrap_or_default()).collect();
                rows.push(columns.join("|"));
            }
        }
        Ok(rows.join("\n"))
    }

    /// Appends one line, as a worker does: prepared once, and passed as it is.
    #[track_caller]
    pub(crate) fn append(&mut self, run: i64, claim: i64, seq: i64, line: &str) {
        let (client, prepared) = (&self.client, &mut self.append);
        let appended = self.runtime.block_on(async {
            let statement = match prepared {
                Some(statement) => statement.clone(),
                None => prepared.insert(client.prepare("SELECT nietz.append($1, $2, $3, $4)").await?).clone(),
            };
            client.query(&statement, &[&run, &claim, &seq, &[line].as_slice()]).await
        });
        appended.expect("it is held");
    }

    /// As [`Session::say`], of what must succeed.
    #[track_caller]
    pub(crate) fn get(&mut self, sql: &str) -> String {
        self.say(sql).unwrap_or_else(|code| panic!("{sql}: {code}"))
    }
}

fn state(error: &tokio_postgres::Error) -> String {
    error.code().map_or_else(|| error.to_string(), |code| code.code().to_owned())
}

/// Says that a test shows nothing here, or fails where all have to.
pub(crate) fn skip(why: &str) {
    let needed = std::env::var_os("NIETZ_TEST_POSTGRES").is_some_and(|value| value == "needed");
    assert!(!needed, "{why}");
    eprintln!("SKIPPED: {why}, so nothing was shown");
}

/// The newest of Debian's.
pub(crate) fn binaries() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("NIETZ_TEST_POSTGRES").filter(|value| value != "needed") {
        return Some(PathBuf::from(named));
    }
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let mut found: Vec<(u32, PathBuf)> = versions
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .filter(|(_, folder)| folder.join("initdb").is_file() && folder.join("postgres").is_file())
        .collect();
    found.sort();
    found.pop().map(|(_, folder)| folder)
}

/// Nietz's own scripts, in their order.
pub(crate) fn migrations() -> Vec<PathBuf> {
    scripts("0")
}

/// The queue's script, and those that make later versions of it, in their order.
pub(crate) fn queue() -> Vec<PathBuf> {
    std::iter::once(Path::new(MIGRATIONS).join("pgmq.sql")).chain(scripts("pgmq--")).collect()
}

fn scripts(beginning: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(MIGRATIONS).expect("the scripts are there").flatten().map(|entry| entry.path());
    let is_meant = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(beginning));
    let mut found: Vec<PathBuf> = entries.filter(is_meant).collect();
    found.sort();
    found
}
