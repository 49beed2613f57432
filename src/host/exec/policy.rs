//! The policy of a command: what it may touch, in the form that is passed to the helper.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::key_files::KeyFile;
use super::mounts::{GitMount, Mounts, View, make_place};
use super::protected_places::ProtectedPlaces;
use super::{Commands, copies, environment, processes};
use crate::error::{Code, Failure, Result};
use crate::host::place::{CommandPlace, GitView, OBJECTS};
use crate::model::command::{BuildFolder, CleanupMethod, CommandLimits, ExecCommand, GivenDependencies};
use crate::model::text::line;

/// Folders that programs need to start, without personal files. In a namespace, `/proc` shows only the processes of the
/// namespace.
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix",
    "/gnu",
    "/proc",
    "/sys/devices/system",
    "/sys/fs/cgroup",
    "/sys/kernel/mm",
    "/dev/random",
    "/dev/urandom",
];
/// The parts of `/etc` that programs need. The rest is left out: root could read many keys there.
const ETC: &[&str] = &[
    "alternatives",
    "ant",
    "bash.bashrc",
    "bashrc",
    "ca-certificates",
    "ca-certificates.conf",
    "clang",
    "crypto-policies",
    "debian_version",
    "dotnet",
    "dpkg",
    "elixir",
    "emacs",
    "environment",
    "erlang",
    "fonts",
    "fonts.conf",
    "gdb",
    "ghc",
    "gai.conf",
    "gitattributes",
    "gitconfig",
    "gnutls",
    "group",
    "gtk-3.0",
    "host.conf",
    "hostname",
    "hosts",
    "inputrc",
    "ImageMagick-6",
    "ImageMagick-7",
    "issue",
    "java",
    "java-8-openjdk",
    "java-11-openjdk",
    "java-17-openjdk",
    "java-21-openjdk",
    "java-25-openjdk",
    "julia",
    "jvm",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "ld.so.preload",
    "ld-musl-x86_64.path",
    "ld-musl-aarch64.path",
    "locale.alias",
    "locale.conf",
    "localtime",
    "login.defs",
    "lsb-release",
    "machine-id",
    "magic",
    "magic.mime",
    "mailcap",
    "manpath.config",
    "matplotlibrc",
    "maven",
    "mime.types",
    "mke2fs.conf",
    "mono",
    "mtab",
    "nanorc",
    "networks",
    "nodejs",
    "nsswitch.conf",
    "octave.conf",
    "OpenCL",
    "os-release",
    "papersize",
    "passwd",
    "perl",
    "php",
    "php.d",
    "php.ini",
    "pki/ca-trust",
    "pki/java",
    "pki/tls/cert.pem",
    "pki/tls/certs",
    "pki/tls/openssl.cnf",
    "postgresql-common",
    "profile",
    "profile.d",
    "protocols",
    "python",
    "python2.7",
    "python3",
    "python3.8",
    "python3.9",
    "python3.10",
    "python3.11",
    "python3.12",
    "python3.13",
    "python3.14",
    "R",
    "redhat-release",
    "resolv.conf",
    "rpc",
    "sbt",
    "services",
    "sgml",
    "shells",
    "ssl/cert.pem",
    "ssl/certs",
    "ssl/openssl.cnf",
    "static",
    "subgid",
    "subuid",
    "terminfo",
    "texmf",
    "timezone",
    "vim",
    "vulkan",
    "X11",
    "xdg",
    "xml",
    "zsh",
    "zshenv",
    "zshrc",
];
/// Harmless devices that commands may read and write.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full"];
/// The folder of the host name resolver, for commands with network.
const RESOLVER: &str = "/run/systemd/resolve";

/// The most processes of one command at once.
const PROCESSES: u64 = 512;
/// How many threads are allowed per process: the kernel counts threads, and a compiler has many.
const THREADS: u64 = 8;
/// The largest file, in bytes, that a command may write.
const FILE: u64 = 4 << 30;
/// The most that a command may write to disks, in megabytes: about ten times the output of a large build.
const WRITTEN: u64 = 64 << 10;
/// The same for all commands of a run, as long as its process lives: enough for a thousand builds of 1 GiB.
const RUN_WRITTEN: u64 = 1 << 20;
/// The most open files of one process.
const OPEN_FILES: u64 = 65_536;
/// The largest configuration file, in bytes, that is copied.
const CONFIGURATION: u64 = 1 << 20;

/// A copy, and the original that it replaces.
type ConfigCopy = (PathBuf, PathBuf);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Policy {
    /// The file for the helper's report.
    pub report: PathBuf,
    /// The pipe that is its standard input; without one, it has none.
    pub input: Option<PathBuf>,
    /// The worktree.
    pub folder: PathBuf,
    /// Where in it the command starts.
    pub start: PathBuf,
    /// The folder that is made for this command only.
    pub private: PathBuf,
    /// Whether there is a sandbox at all.
    pub confine: bool,
    pub net: bool,
    /// The method that ends left-over processes; the first that works, if none is named.
    pub ends: Option<CleanupMethod>,
    /// Set by the helper: whether the command runs in a PID namespace, whether it has a loopback of its own, and the control
    /// group that it joins.
    pub namespace: bool,
    pub loopback: bool,
    pub cgroup: Option<PathBuf>,
    pub read: Vec<PathBuf>,
    pub write: Vec<PathBuf>,
    /// The folders that stay writable in a mount namespace.
    pub kept: Vec<PathBuf>,
    /// The folder that replaces the machine's shared memory, where mounts can be made.
    pub shared: PathBuf,
    /// What stands in other places than its own.
    pub mounts: Mounts,
    /// Variables for a command in a namespace of mounts.
    pub variables: BTreeMap<String, String>,
    /// Copies without keys and their originals. Only where mounts can be made can a command read them.
    pub copies: Vec<ConfigCopy>,
    pub processes: u64,
    /// In bytes, as are the next two.
    pub memory: u64,
    pub written: u64,
    pub file: u64,
    pub open_files: u64,
}

impl Policy {
    pub(super) fn new(
        commands: &Commands,
        kept: &ProtectedPlaces,
        place: &CommandPlace,
        command: &ExecCommand,
        private: &Path,
    ) -> Result<Policy> {
        let folder = place.folder.as_path();
        let temporary = private.join("tmp");
        let mut read: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
        read.extend(ETC.iter().map(|name| Path::new("/etc").join(name)));
        read.extend(environment::readable(&commands.environment, kept));
        for place in &commands.read {
            match kept.resolve_visible(place) {
                Some(place) => read.push(place),
                // A missing place shows nothing.
                None if !place.exists() => {}
                None => return Err(not_shown(place)),
            }
        }
        if commands.grants.net {
            read.push(PathBuf::from(RESOLVER));
        }
        let mut write: Vec<PathBuf> = DEVICES.iter().map(PathBuf::from).collect();
        write.extend([folder.to_owned(), temporary.clone()]);
        let shared = private.join("shm");
        std::fs::create_dir_all(&shared).map_err(|error| Failure::io(&shared, "create", &error))?;
        let (in_place, mut copies) = configuration(commands, private)?;
        read.extend(in_place);
        for named in &command.read {
            let home = commands.environment.get("HOME").map(Path::new);
            let file = KeyFile::find(named, home, &commands.protected)?;
            file.tell(&commands.redactor)?;
            file.link(&temporary)?;
            copies.retain(|(_, original)| original.canonicalize().is_ok_and(|original| original != file.resolved()));
            read.push(file.resolved().to_owned());
        }
        let mut mounts = Mounts::default();
        let mut kept_folders = vec![folder.to_owned(), private.to_owned()];
        if let Some(given) = &command.dependencies {
            let written = place.written.as_deref().filter(|_| given.keep);
            kept_folders.extend(written.map(Path::to_owned));
            add_dependencies(&mut mounts, given, place, (kept, private, written.unwrap_or(private)))?;
            let sources = mounts.dependencies.iter().map(|view| &view.source);
            let bases = sources.clone().filter_map(|source| kept.resolve_visible(&environment::python_base(source)?));
            read.extend(bases.chain(sources.cloned()));
        }
        let mut variables = BTreeMap::new();
        for (at, cache) in environment::caches(&commands.environment, kept, &commands.grants).into_iter().enumerate() {
            mounts.caches.push(View::new(&cache.place, &cache.place, private, &format!("cache-{at}"))?);
            read.push(cache.place);
            variables.extend(cache.variable.map(|(name, value)| (name.to_owned(), value.display().to_string())));
        }
        if let (Some(BuildFolder { keep, .. }), Some(builds)) = (&command.builds, &place.builds) {
            std::fs::create_dir_all(builds).map_err(|error| Failure::io(builds, "create", &error))?;
            match keep {
                true => {
                    kept_folders.push(builds.clone());
                    write.push(builds.clone());
                }
                false => {
                    read.push(builds.clone());
                    mounts.caches.push(View::new(builds, builds, private, "builds")?);
                }
            }
            mounts.target = target(folder, builds)?;
            let folders = environment::BUILDS.iter();
            variables.extend(folders.map(|(name, part)| ((*name).to_owned(), builds.join(part).display().to_string())));
        }
        if let Some(view) = place.git.as_ref().filter(|_| !commands.grants.no_sandbox) {
            mounts.git = Some(git_mount(view, folder, private)?);
            write.push(private.join("git"));
            read.push(private.join("git-file"));
        }
        let limits = commands.limits;
        let megabytes = |limit: Option<u64>, default: u64| limit.map_or(default, |limit| limit.saturating_mul(1 << 20));
        Ok(Policy {
            report: private.join("report"),
            input: None,
            folder: folder.to_owned(),
            start: place.start.clone(),
            private: private.to_owned(),
            confine: !commands.grants.no_sandbox,
            net: commands.grants.net,
            ends: commands.ends,
            namespace: false,
            loopback: false,
            cgroup: None,
            read,
            write,
            kept: kept_folders,
            shared,
            mounts,
            variables,
            copies,
            processes: limits.processes.unwrap_or(PROCESSES),
            memory: megabytes(limits.megabytes, default_memory()),
            written: megabytes(limits.written_megabytes, WRITTEN << 20),
            file: FILE,
            open_files: limits.open_files.unwrap_or(OPEN_FILES),
        })
    }

    /// Returns how many processes and threads the kernel allows the command.
    pub(super) fn tasks(&self) -> u64 {
        self.processes.saturating_mul(THREADS)
    }

    /// Returns the policy as one command line argument; it holds no secret.
    pub(super) fn text(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|_| {
            let all = [&self.report].into_iter().chain(&self.write).chain(&self.read);
            let odd = all.filter(|path| path.to_str().is_none()).map(|path| path.display().to_string()).next();
            let message = format!("commands cannot be run with a path that is not UTF-8: {}", odd.unwrap_or_default());
            Failure::new(Code::CommandFailed, message).hint("TMPDIR and the folder's own path have to be UTF-8")
        })
    }
}

/// Adds the folders of dependencies that a command finds in its worktree.
fn add_dependencies(
    mounts: &mut Mounts,
    given: &GivenDependencies,
    place: &CommandPlace,
    (kept, private, written): (&ProtectedPlaces, &Path, &Path),
) -> Result<()> {
    let (folder, project) = (&place.folder, &place.project);
    for (at, given) in given.folders.iter().enumerate() {
        let source = project.join(&given.path);
        // A file of the worktree, or a link, in that place is what the branch has there.
        if !source.is_dir() || !make_place(folder, &given.path) {
            continue;
        }
        // It may be a link, and the project somebody else's.
        let source = kept.resolve_visible(&source).ok_or_else(|| hidden_dependencies(&given.path))?;
        mounts.dependencies.push(View::new(&source, &folder.join(&given.path), written, &format!("given-{at}"))?);
        mounts.editable.extend(given.editable.iter().cloned());
    }
    // A folder around the command's own would hide them.
    let hides = [folder.as_path(), private].iter().any(|own| own.starts_with(project));
    if !mounts.dependencies.is_empty() && !hides {
        mounts.project = Some(project.clone());
    }
    Ok(())
}

/// Returns where a Cargo project looks for what it has built, unless its own files stand there, and what is shown there: its
/// part of the folder for builds.
fn target(folder: &Path, builds: &Path) -> Result<Option<(PathBuf, PathBuf)>> {
    let place = folder.join(environment::TARGET);
    let is_free = || std::fs::read_dir(&place).is_ok_and(|mut entries| entries.next().is_none());
    if !folder.join("Cargo.toml").is_file() || !make_place(folder, environment::TARGET) || !is_free() {
        return Ok(None);
    }
    let built = builds.join(environment::BUILDS[0].1);
    std::fs::create_dir_all(&built).map_err(|error| Failure::io(&built, "create", &error))?;
    Ok(Some((built, place)))
}

/// Makes the git folder of a command.
fn git_mount(view: &GitView, folder: &Path, private: &Path) -> Result<GitMount> {
    let (git, file) = (private.join("git"), private.join("git-file"));
    view.write(&git)?;
    std::fs::write(&file, format!("gitdir: {}\n", git.display()))
        .map_err(|error| Failure::io(&file, "write", &error))?;
    let objects_target = git.join(OBJECTS);
    Ok(GitMount { folder: git, file, target: folder.join(".git"), objects: view.objects.clone(), objects_target })
}

fn hidden_dependencies(path: &str) -> Failure {
    Failure::new(Code::CommandFailed, format!("the dependencies in {} are not shown to commands", line(path)))
        .because("it is a link to what holds keys, or shows the home, the workspace or a folder of nietz or of the system whole")
        .hint("remove the link, or let it lead to a folder of dependencies")
}

fn not_shown(place: &Path) -> Failure {
    let shown = line(&place.display().to_string()).into_owned();
    Failure::new(Code::ConfigInvalid, format!("commands.read: {shown} is not shown to commands"))
        .because("it holds keys, or shows the home, the workspace or a folder of nietz or of the system whole")
        .hint("name the folders in it that commands need, in config.yaml")
}

/// Returns limits with the defaults in place of those that are absent.
pub(crate) fn with_defaults(limits: CommandLimits) -> CommandLimits {
    CommandLimits {
        processes: limits.processes.or(Some(PROCESSES)),
        megabytes: limits.megabytes.or(Some(default_memory() >> 20)),
        written_megabytes: limits.written_megabytes.or(Some(WRITTEN)),
        open_files: limits.open_files.or(Some(OPEN_FILES)),
        run_megabytes: limits.run_megabytes.or(Some(default_memory() >> 20)),
        run_written_megabytes: limits.run_written_megabytes.or(Some(RUN_WRITTEN)),
    }
}

/// Returns three quarters of the machine's memory, in bytes: a command that takes more endangers the whole machine.
fn default_memory() -> u64 {
    match processes::machine_memory() {
        0 => 8 << 30,
        all => all / 4 * 3,
    }
}

/// Writes copies of the configuration of build tools, without keys, into the private folder. Returns the files that hold no
/// keys and can be read in place, and the copies with their originals.
fn configuration(commands: &Commands, private: &Path) -> Result<(Vec<PathBuf>, Vec<ConfigCopy>)> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error: std::io::Error| Failure::io(&path, "write", &error)
    };
    let copied = |path: &Path| {
        let text = text(path)?;
        let kept = copies::without_keys(&text).unwrap_or_default();
        let kept = commands.redactor.text(&kept).into_owned();
        Some((kept == text, kept))
    };
    let (mut in_place, mut copies) = (Vec::new(), Vec::new());
    for path in environment::cargo_configuration(&commands.environment) {
        match copied(&path) {
            Some((true, _)) => in_place.push(path),
            Some((false, kept)) => {
                let copy = private.join(format!("copy-{}", copies.len()));
                std::fs::write(&copy, kept).map_err(failed(&copy))?;
                copies.push((copy, path));
            }
            None => {}
        }
    }
    for (path, name) in environment::configuration(&commands.environment) {
        if let Some((_, kept)) = copied(&path) {
            let copy = private.join("tmp").join(name);
            let folder = copy.parent().unwrap_or(private);
            std::fs::create_dir_all(folder).map_err(failed(folder))?;
            std::fs::write(&copy, kept).map_err(failed(&copy))?;
        }
    }
    Ok((in_place, copies))
}

/// Returns the text of a plain file that is not too long.
fn text(path: &Path) -> Option<String> {
    let found = std::fs::metadata(path).ok()?;
    (found.is_file() && found.len() <= CONFIGURATION).then(|| std::fs::read_to_string(path).ok())?
}
