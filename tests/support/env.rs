//! A workspace and a home of their own for one test: nothing of the machine's user reaches the program.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nietz::engine::run_records::RunRecords;
use nietz::engine::runs::Runs;

use crate::support::journal::Journal;
use crate::support::model_server::ModelServer;
use crate::support::process::Call;

/// The key that the program is given. Redaction has to keep it out of everything.
pub(crate) const KEY: &str = "planted-key-5f1d9a77c3";

/// The id of the run that a test begins, unless it says another.
pub(crate) const RUN: &str = "r1";

/// A temporary workspace, home and environment.
pub(crate) struct Env {
    folder: tempfile::TempDir,
    variables: BTreeMap<String, String>,
}

impl Env {
    /// Makes an environment whose model service refuses every connection.
    pub(crate) fn new() -> Env {
        Env::below(tempfile::tempdir().expect("a temporary folder can be made"))
    }

    /// Makes an environment at `/tmp/nietz-NAME`, for a journal that is kept: it names no folder of the machine that recorded it.
    pub(crate) fn to_record(name: &str) -> Env {
        let folder = tempfile::Builder::new().prefix(&format!("nietz-{name}")).rand_bytes(0).tempdir_in("/tmp");
        Env::below(folder.expect("nobody else records it now"))
    }

    fn below(folder: tempfile::TempDir) -> Env {
        let env = Env { variables: BTreeMap::new(), folder };
        for path in [env.workspace(), env.home()] {
            std::fs::create_dir_all(path).expect("a folder can be made");
        }
        let home = env.home().display().to_string();
        env.var("HOME", &home)
            .var("NIETZ_HOME", &home)
            .var("PATH", "/usr/bin:/bin")
            .var("NIETZ_CLOCK", "2026-01-09T10:30:00Z")
            .var("NIETZ_RUN", RUN)
            .var("OPENAI_API_KEY", KEY)
            // Nothing listens on port 1 of the loopback.
            .var("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
            // A fault is tried again at once, and not for long.
            .config("models: {retry: {attempts: 3, total_seconds: 20, base_delay_ms: 1}}\n")
            .trusting("'*'")
    }

    /// Writes that the test's user trusts the workspace with these things alone, as YAML in brackets has them.
    pub(crate) fn trusting(self, items: &str) -> Env {
        let workspace = self.workspace().canonicalize().expect("the workspace is there");
        let text = format!("version: 1\nfolders:\n  {}: [{items}]\n", workspace.display());
        std::fs::write(self.home().join("trust.yaml"), text).expect("the home can be written");
        self
    }

    /// Makes an environment with this model service.
    pub(crate) fn with(server: &ModelServer) -> Env {
        Env::new().var("OPENAI_BASE_URL", &server.url())
    }

    /// Sets a variable of the environment.
    pub(crate) fn var(mut self, name: &str, value: &str) -> Env {
        self.variables.insert(name.to_owned(), value.to_owned());
        self
    }

    /// The variables of the environment, for programs other than nietz.
    pub(crate) fn variables(&self) -> &BTreeMap<String, String> {
        &self.variables
    }

    /// Takes a variable out of the environment.
    pub(crate) fn without(mut self, name: &str) -> Env {
        self.variables.remove(name);
        self
    }

    /// Writes a file of the workspace.
    pub(crate) fn file(self, path: &str, text: impl AsRef<[u8]>) -> Env {
        self.write(path, text);
        self
    }

    /// Writes `flows/<name>.lua`.
    pub(crate) fn flow(self, name: &str, source: &str) -> Env {
        self.file(&format!("flows/{name}.lua"), source)
    }

    /// Writes the user's `config.yaml`.
    pub(crate) fn config(self, text: &str) -> Env {
        std::fs::write(self.home().join("config.yaml"), text).expect("the home can be written");
        self
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.workspace().join(path)
    }

    pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().expect("a file has a folder")).expect("a folder can be made");
        std::fs::write(path, text).expect("the workspace can be written");
    }

    pub(crate) fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.path(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub(crate) fn journal_path(&self) -> PathBuf {
        self.path(&format!(".nietz/runs/{RUN}/journal.jsonl"))
    }

    /// Records a run whose journal was put there as one that the test's user began there.
    pub(crate) fn own(&self, run: &str) {
        let workspace = self.workspace().canonicalize().expect("the workspace is there");
        let runs = Runs::new(&workspace, RunRecords::new(&self.home()), None);
        let journal = std::fs::read(runs.journal(run).expect("it can be found")).expect("there is a journal");
        let end = journal.iter().position(|byte| *byte == b'\n').expect("its first line is whole");
        runs.note_own(run, &journal[..=end], &[]).expect("the home can be written");
    }

    /// Returns the page of the latest run, without escapes that the template makes. Where `NIETZ_TEST_PAGES` names a folder, the page is
    /// kept there under a name, so that a browser can open it.
    pub(crate) fn page(&self, name: &str) -> String {
        self.page_by(&[], name)
    }

    /// As [`Env::page`], of a journal.
    pub(crate) fn page_of(&self, journal: &str, name: &str) -> String {
        self.page_by(&[journal], name)
    }

    fn page_by(&self, run: &[&str], name: &str) -> String {
        self.nietz(["report", "-o", "page.html"].into_iter().chain(run.iter().copied())).go().exits(0);
        if let Some(folder) = std::env::var_os("NIETZ_TEST_PAGES") {
            let kept = PathBuf::from(folder).join(format!("{name}.html"));
            std::fs::copy(self.path("page.html"), kept).expect("the folder for pages can be written");
        }
        self.read("page.html").replace("&#x2f;", "/").replace("&#x27;", "'")
    }

    /// Reads the journal of the test's run.
    pub(crate) fn journal(&self) -> Journal {
        Journal::read(&self.journal_path())
    }

    /// Every file of the workspace apart from `.nietz`, by its path.
    pub(crate) fn documents(&self) -> BTreeMap<String, String> {
        let mut files = BTreeMap::new();
        collect(&self.workspace(), "", &mut files);
        files
    }

    /// A call of the program with these arguments.
    pub(crate) fn nietz<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Call {
        Call::new(&self.workspace(), &self.variables, arguments)
    }

    /// `nietz run`, with JSON lines both ways, the test's model and a fixed seed.
    pub(crate) fn run<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Call {
        self.run_on("openai/test", arguments)
    }

    /// `nietz run` as [`Env::run`], with another model.
    pub(crate) fn run_on<'a>(&self, model: &str, arguments: impl IntoIterator<Item = &'a str>) -> Call {
        self.nietz(["run", "--json", "--seed", "1", "--model", model]).args(arguments)
    }

    /// `nietz resume` of the test's run, with JSON lines both ways.
    pub(crate) fn resume(&self) -> Call {
        self.nietz(["resume", RUN, "--json"])
    }

    /// Returns a text with what differs from machine to machine taken out.
    pub(crate) fn normal(&self, text: &str) -> String {
        let folder = self.folder.path().canonicalize().expect("the folder is there");
        let mut out = text.to_owned();
        for path in [folder.as_path(), self.folder.path()] {
            out = out.replace(&path.display().to_string(), "/tmp/test");
        }
        out
    }
}

fn collect(folder: &Path, below: &str, files: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(folder).expect("a folder can be listed") {
        let entry = entry.expect("an entry can be read");
        let name = entry.file_name().into_string().expect("names are UTF-8");
        let path = if below.is_empty() { name } else { format!("{below}/{name}") };
        if path == ".nietz" {
            continue;
        }
        if entry.path().is_dir() {
            collect(&entry.path(), &path, files);
        } else {
            let bytes = std::fs::read(entry.path()).expect("a file can be read");
            files.insert(path, String::from_utf8_lossy(&bytes).into_owned());
        }
    }
}
