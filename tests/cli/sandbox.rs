//! The promise: what a model has written can touch its worktree and a temporary folder, and nothing else.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::env::{Env, KEY};
use crate::support::git;
use crate::support::process::Ended;

const FLOW: &str = include_str!("../support/flows/worktree.lua");

/// Enough of the key to find it; the whole of it would be taken out of the command.
const PART: &str = "planted-key-5f1d9a";

pub(crate) fn env() -> Env {
    let env = Env::new().flow("worktree", FLOW).file("README", "the user's own\n").file("src/a.txt", "one\n");
    git::init(&env.workspace());
    std::fs::write(env.home().join("secret"), "private\n").expect("the home can be written");
    env
}

pub(crate) fn run(env: &Env, script: &str, more: &[&str]) -> Ended {
    let arguments = ["worktree"].into_iter().chain(more.iter().copied()).chain(["--", script]);
    env.run(arguments).go()
}

/// Runs a script and returns what it wrote, one probe a line.
#[track_caller]
pub(crate) fn wrote(env: &Env, script: &str, more: &[&str]) -> String {
    let result = run(env, script, more).result();
    assert_eq!(result["ran"]["over"], "exit", "{result}");
    result["ran"]["output"].as_str().expect("it is text").to_owned()
}

/// Holds a lock as long as anything of it is there: numbers of processes say nothing outside of their namespace.
const HOLD: &str = "exec 9>held; flock 9; echo >&9; sleep 1000";

/// Tells whether somebody holds a lock on a file that was made.
pub(crate) fn is_held(file: &Path) -> bool {
    let lock = std::fs::File::open(file).expect("it was made").try_lock();
    matches!(lock, Err(std::fs::TryLockError::WouldBlock))
}

/// Waits for what another process does soon.
fn soon(what: &str, happened: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(10);
    while !happened() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn nothing_outside_of_the_worktree_can_be_read_written_or_reached() {
    assert!(KEY.starts_with(PART));
    let env = env();
    let home = env.home().display().to_string();
    let work = env.workspace().display().to_string();
    let server = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = server.local_addr().expect("it is bound").port();
    let connect = format!(
        "perl -MSocket -e 'socket(S,PF_INET,SOCK_STREAM,0) and connect(S,sockaddr_in({port},inet_aton(\"127.0.0.1\"))) or \
         exit 1'"
    );
    let send = "perl -MSocket -e 'socket(S,PF_INET,SOCK_DGRAM,0) and connect(S,sockaddr_in(9,inet_aton(\"192.0.2.1\"))) or \
                exit 1'";
    let probes = [
        ("write the home", format!("echo x > {home}/new")),
        ("truncate a file of the home", format!(": > {home}/secret")),
        ("read the home", format!("cat {home}/secret")),
        ("list the home", format!("ls {home}")),
        ("read the user's checkout", format!("cat {work}/README")),
        ("write the user's checkout", format!("echo x > {work}/README")),
        ("change the repository", format!("echo x >> {work}/.git/config")),
        ("plant a hook", format!("echo x > {work}/.git/hooks/post-checkout")),
        ("write through a link", format!("ln -s {home} out; echo x > out/new")),
        ("make a hard link", format!("ln {home}/secret hard")),
        ("move a file out", format!("echo x > f; mv f {home}/f")),
        ("remove a file", format!("rm -f {home}/secret; test ! -e {home}/secret")),
        ("write to /tmp", format!("echo x > /tmp/nietz-probe-{}", std::process::id())),
        ("connect to a server of this machine", connect.clone()),
        ("send to another machine", send.to_owned()),
        ("read a terminal of the machine", "cat /dev/console /dev/tty0".to_owned()),
        ("open a socket of the machine", "perl -MSocket -e 'socket(S,PF_UNIX,SOCK_STREAM,0) or exit 1'".to_owned()),
        ("signal its keeper", "kill -0 $PPID".to_owned()),
        (
            "signal nietz",
            "for p in /proc/[0-9]*; do if [ \"$(cat $p/comm)\" = nietz ]; then kill -0 ${p#/proc/} && exit 0; fi; done; \
             exit 1"
            .to_owned(),
        ),
        ("read nietz's environment", format!("grep -q {PART} /proc/[0-9]*/environ")),
        ("make a namespace", "unshare -Ur true".to_owned()),
        ("mount something", "mount -t tmpfs none .".to_owned()),
    ];
    let script: String = probes
        .iter()
        .map(|(name, probe)| format!("if ( {probe} ) >/dev/null 2>&1; then echo \"{name}: allowed\"; fi\n"))
        .collect();
    let output = wrote(&env, &format!("{script}echo done"), &[]);
    assert_eq!(output, "done\n");
    assert_eq!(std::fs::read_to_string(env.home().join("secret")).unwrap(), "private\n");
    assert_eq!(env.read("README"), "the user's own\n");
    assert_eq!(git::git(&env.workspace(), ["status", "--porcelain"]), "");
}

#[test]
fn test_suites_have_a_loopback_and_terminals_of_their_own() {
    let env = env();
    let script = "perl -MIO::Socket::INET -e '
        my $server = IO::Socket::INET->new(Listen => 1, LocalAddr => \"127.0.0.1\") or die;
        if (!fork) { my $client = $server->accept; print $client \"from a server of its own\\n\"; exit }
        my $client = IO::Socket::INET->new(PeerAddr => \"localhost\", PeerPort => $server->sockport) or die;
        print <$client>; wait'
        script -qec tty /dev/null";
    assert_eq!(wrote(&env, script, &[]), "from a server of its own\n/dev/pts/0\r\n");
    // Two commands never meet: a port that one has is free for the other.
    let port = "perl -MSocket -e 'socket(S,PF_INET,SOCK_STREAM,0); bind(S,sockaddr_in(4242,INADDR_ANY)) or exit 1'";
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = port.replace("4242", &taken.local_addr().expect("it is bound").port().to_string());
    assert_eq!(wrote(&env.var("NIETZ_RUN", "r2"), &format!("{port} && echo free"), &[]), "free\n");
}

#[test]
fn without_a_namespace_there_is_no_network_at_all() {
    let env = env().config("commands: {ends: subreaper}\n");
    let script = "for kind in SOCK_STREAM SOCK_DGRAM; do perl -MSocket -e \"socket(S,PF_INET,$kind,0) or exit 1\" && echo $kind; \
                  done; script -qec tty /dev/null 2>/dev/null | grep pts; true";
    assert_eq!(wrote(&env, script, &[]), "");
}

#[test]
fn the_probes_find_what_is_open() {
    let env = env();
    let home = env.home().display().to_string();
    let probes = [
        format!("cat {home}/secret"),
        format!("cat {}/README", env.workspace().display()),
        "perl -MSocket -e 'socket(S,PF_INET,SOCK_DGRAM,0) or exit 1'".to_owned(),
        "perl -MSocket -e 'socket(S,PF_UNIX,SOCK_STREAM,0) or exit 1'".to_owned(),
        "kill -0 $PPID".to_owned(),
        format!("grep -q {PART} /proc/[0-9]*/environ"),
    ];
    let script: String = probes.iter().map(|probe| format!("( {probe} ) >/dev/null 2>&1 && echo open\n")).collect();
    assert_eq!(wrote(&env, &script, &["--no-sandbox"]), "open\n".repeat(probes.len()));
}

#[test]
fn what_a_build_needs_works() {
    let env = env();
    let script = "set -e; echo x > new; mkdir -p d/e; mv new d/e/; cat src/a.txt; f=$(mktemp); echo y > $f; cat $f; \
                  echo z > $HOME/z; perl -MSocket -e 'socketpair(A,B,PF_UNIX,SOCK_STREAM,0) or exit 1'; \
                  (echo a & wait); git init -q $TMPDIR/r; echo > /dev/null; env | grep -c planted || true";
    assert_eq!(wrote(&env, script, &[]), "one\ny\na\n0\n");
}

#[test]
fn with_the_network_allowed_only_the_network_is() {
    let env = env();
    let script = "perl -MSocket -e 'socket(S,PF_INET,SOCK_STREAM,0) or exit 1' && echo tcp; \
                  perl -MSocket -e 'socket(S,PF_UNIX,SOCK_STREAM,0) or exit 1' && echo unix; true";
    assert_eq!(wrote(&env, script, &["--allow-net"]), "tcp\n");
    let home = env.home().display().to_string();
    let second = env.var("NIETZ_RUN", "r2");
    assert_eq!(wrote(&second, &format!("cat {home}/secret"), &["--no-sandbox"]), "private\n");
}

#[test]
fn only_what_the_user_gave_is_run() {
    let env = env().flow(
        "other",
        "local git = require('@nietz/git')\n\
         return require('@nietz').flow { name = 'other', summary = 's', permissions = { git = true, exec = { 'ls' } },\n\
         run = function()\n\
         git.branch('nietz/x', git.head().commit)\n\
         local tree = git.worktree { name = 'x', branch = 'nietz/x' }\n\
         local function code(options) local ok, err = pcall(tree.exec, tree, options) return if ok then 'ran' else err.code end\n\
         return { code { program = { 'ls', '-l' } }, code { program = { 'rm', 'x' } }, code { shell = 'ls; rm x' },\n\
         code { shell = 'ls' }, code { program = { '/bin/ls' } } } end }",
    );
    git::init(&env.workspace());
    let no = "permission-refused";
    assert_eq!(env.run(["other"]).go().result(), serde_json::json!(["ran", no, no, "ran", no]));
}

#[test]
fn a_command_without_permission_for_git_is_refused() {
    let env = env().flow(
        "other",
        "local git = require('@nietz/git')\n\
         return require('@nietz').flow { name = 'other', summary = 's', run = function() git.head() end }",
    );
    let ended = env.run(["other"]).go().exits(5);
    assert_eq!(ended.failure(), "permission-refused");
}

fn over(result: &Value) -> &str {
    result["ran"]["over"].as_str().unwrap_or_default()
}

#[test]
fn limits_end_everything_that_a_command_started() {
    for (limit, over_by, script) in [
        (["--seconds", "0.8"], "timeout", "echo begun; setsid sh -c '{HOLD}' & sleep 1000"),
        (["--idle", "0.8"], "idle", "setsid sh -c '{HOLD}' & for i in 1 2 3; do echo $i; sleep 0.2; done; sleep 1000"),
        (["--seconds", "40"], "output", "setsid sh -c '{HOLD}' & sleep 0.2; yes"),
        (["--seconds", "40"], "processes", "setsid sh -c '{HOLD}' & for i in $(seq 600); do sleep 1000 & done; wait"),
        (["--seconds", "40"], "exit", "setsid sh -c '{HOLD}' & while [ ! -s held ]; do :; done"),
    ] {
        let env = env();
        let result = run(&env, &script.replace("{HOLD}", HOLD), &limit).result();
        assert_eq!(over(&result), over_by, "{result}");
        let held = Path::new(result["path"].as_str().unwrap()).join("held");
        assert!(!is_held(&held), "{over_by}: something is still there");
    }
}

#[test]
fn a_command_ends_with_the_one_who_asked_for_it() {
    let env = env();
    let script = format!("setsid sh -c '{HOLD}' & sleep 1000");
    let running = env.run(["worktree", "--", &script]).spawn();
    let folder = || {
        let worktrees = std::fs::read_dir(env.home().join("worktrees")).ok()?.next()?.ok()?.path();
        Some(worktrees.join("r1-one/held"))
    };
    let held = || folder().is_some_and(|path| std::fs::metadata(path).is_ok_and(|found| found.len() > 0));
    soon("the command begins", held);
    let held = folder().unwrap();
    assert!(is_held(&held));
    running.kill();
    soon("the command ends", || !is_held(&held));
}

#[test]
fn a_time_limit_of_the_flow_ends_a_command_too() {
    let env = env();
    let result = run(&env, HOLD, &["--limit", "0.8"]).result();
    assert_eq!(result["ran"]["code"], "timed-out", "{result}");
    let held = Path::new(result["path"].as_str().unwrap()).join("held");
    assert!(!is_held(&held), "it is over before the flow goes on");
}

#[test]
fn a_long_output_is_cut_for_the_flow_and_whole_in_a_file() {
    let env = env();
    let result = run(&env, "seq 1 20000", &[]).result();
    let output = result["ran"]["output"].as_str().unwrap();
    assert!(output.starts_with("1\n2\n") && output.ends_with("20000\n") && output.len() < 30_000);
    let file = result["ran"]["file"].as_str().unwrap();
    assert_eq!(env.read(file).lines().count(), 20_000);
}

#[test]
fn a_failing_command_is_no_error_and_an_absent_one_is() {
    let env = env();
    let result = run(&env, "echo no >&2; exit 3", &[]).result();
    assert_eq!((&result["ran"]["exit"], &result["ran"]["output"]), (&3.into(), &"no\n".into()));
    let second = env.var("NIETZ_RUN", "r2");
    assert_eq!(run(&second, "kill -9 $$", &[]).result()["ran"]["exit"], 137);
}

#[test]
fn after_a_crash_only_a_repeatable_command_is_run_again() {
    for (repeatable, handled) in [(true, false), (false, true), (false, false)] {
        let env = env();
        let line = {
            let whole = env.run(["worktree", "--", "echo x >> f; cat f"]).go();
            whole.result();
            let journal = env.journal();
            let intent = |line: &&Value| line["is"]["intent"]["kind"] == "exec";
            journal.lines.iter().find(intent).expect("it ran")["seq"].as_u64().unwrap()
        };
        let env = self::env();
        let flags = [(repeatable, "--repeatable"), (handled, "--handled")];
        let flags = flags.into_iter().filter(|(on, _)| *on).map(|(_, flag)| flag);
        let arguments: Vec<&str> = ["worktree"].into_iter().chain(flags).chain(["--", "echo x >> f; cat f"]).collect();
        let killed = env.run(arguments.iter().copied()).var("NIETZ_FAULT", &format!("kill@{line}")).go();
        assert_eq!(killed.signal, Some(9));
        let ended = env.resume().go();
        match (repeatable, handled) {
            (true, _) => assert_eq!(ended.result()["ran"]["output"], "x\n"),
            (_, true) => {
                assert_eq!(ended.result()["ran"]["code"], "command-in-doubt");
                // Killed once more, when the doubt was noted and nothing had come of it yet: it is in doubt as before.
                let env = self::env();
                env.run(arguments).var("NIETZ_FAULT", &format!("kill@{line}")).go();
                let noted = env.journal().lines.len() + 2;
                assert_eq!(env.resume().var("NIETZ_FAULT", &format!("kill@{noted}")).go().signal, Some(9));
                let last = env.journal().lines.pop().expect("there are lines");
                assert_eq!(last["is"]["outcome"]["failure"]["code"], "command-in-doubt", "{last}");
                assert_eq!(env.resume().go().result()["ran"]["code"], "command-in-doubt");
            }
            _ => assert_eq!((ended.code, ended.failure().as_str()), (Some(1), "command-in-doubt")),
        }
    }
}
