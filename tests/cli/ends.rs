//! The promise: whatever ends what a command leaves behind, nothing of it is left, and limits hold for all of it.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cli::sandbox::{env, is_held, run, wrote};
use crate::support::env::Env;
use crate::support::process::Ended;

const WAYS: [&str; 3] = ["namespace", "cgroup", "subreaper"];

/// Tells whether a way to end processes is to be had on this machine.
pub(crate) fn there(env: &Env, ends: &str) -> bool {
    let said = env.nietz(["doctor", "--json"]).go().stdout;
    let lines = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let found: Vec<String> = lines.filter_map(|line| Some(line["found"].as_str()?.to_owned())).collect();
    let works = |found: &String| {
        found.starts_with(&format!("{ends} is in force")) || *found == format!("{ends} would work, too")
    };
    let works = found.iter().any(works);
    if !works {
        eprintln!("not tried, because it is not to be had here: {ends}");
    }
    works
}

fn by(ends: &str, limits: &str) -> Env {
    env().config(&format!("commands: {{ends: {ends}, limits: {{{limits}}}}}\n"))
}

/// Forks and exits all the time, in a session of its own, and holds a lock as long as anything of it is there.
const HOP: &str = "perl -MFcntl=:flock -MPOSIX=setsid -e 'open(F, q(>held)); flock(F, LOCK_EX); $| = 1; print qq(held\\n); \
                   exit if fork; setsid; open(STDOUT, q(>/dev/null)); open(STDERR, q(>/dev/null)); \
                   for (1..200000) { exit if fork }'";

/// Tells whether nobody holds the lock any more.
fn is_free(tree: &Path) -> bool {
    !is_held(&tree.join("held"))
}

fn tree(result: &Value) -> &Path {
    Path::new(result["path"].as_str().expect("a path"))
}

#[test]
fn what_forks_and_exits_all_the_time_is_over_with_its_command() {
    for ends in WAYS {
        let env = by(ends, "");
        if !there(&env, ends) {
            continue;
        }
        let result = run(&env, HOP, &[]).result();
        assert_eq!(result["ran"]["output"], "held\n", "{ends}");
        assert!(is_free(tree(&result)), "{ends}");
        let env = by(ends, "").var("NIETZ_RUN", "r2");
        let result = run(&env, &format!("{HOP}; sleep 1000"), &["--seconds", "1"]).result();
        assert_eq!(result["ran"]["over"], "timeout", "{ends}");
        assert!(is_free(tree(&result)), "{ends}");
    }
}

/// Waits for what another process does soon.
fn soon(what: &str, happened: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !happened() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn it_is_over_with_nietz_and_its_temporary_folder_is_gone() {
    for ends in WAYS {
        let env = by(ends, "");
        if !there(&env, ends) {
            continue;
        }
        let temporary = env.home().join("temporary");
        std::fs::create_dir(&temporary).expect("the home can be written");
        let env = env.var("TMPDIR", &temporary.display().to_string());
        let script = format!("mkdir -p $HOME/a/b; chmod 000 $HOME/a; {HOP}; sleep 1000");
        let running = env.run(["worktree", "--", &script]).spawn();
        let held = || {
            let trees = std::fs::read_dir(env.home().join("worktrees")).ok()?.next()?.ok()?.path().join("r1-one");
            trees.join("held").exists().then_some(trees)
        };
        soon("the command begins", || held().is_some());
        let tree = held().expect("it was there");
        running.kill();
        soon(ends, || is_free(&tree));
        let left = || std::fs::read_dir(&temporary).expect("it is there").count();
        soon("the temporary folder is removed", || left() == 0);
    }
}

#[test]
fn in_a_namespace_no_process_of_others_is_seen_and_nothing_of_others_changed() {
    let env = by("namespace", "");
    if !there(&env, "namespace") {
        return;
    }
    let home = env.home().display().to_string();
    let script = format!(
        "cat /proc/[0-9]*/comm > all; sort -u all; \
         for what in 'chmod 777' 'touch -d @0' 'chown 0:0' 'ln -f README'; do $what {home}/secret 2>/dev/null && echo $what; done; \
         cd $PWD && echo x > new && cat new && mv new $HOME/ && cat $HOME/new"
    );
    let said = wrote(&env, &script, &[]);
    assert_eq!(said, "nietz\nsh\nx\nx\n");
}

#[test]
fn a_way_that_is_named_and_not_there_is_refused_and_otherwise_another_is_taken() {
    let no_namespaces = format!(
        "my $f=pack(q(SCCL),0x20,0,0,0).pack(q(SCCL),0x15,0,3,{}).pack(q(SCCL),0x20,0,0,16).pack(q(SCCL),0x45,0,1,{}).\
         pack(q(SCCL),0x06,0,0,0x50001).pack(q(SCCL),0x06,0,0,0x7fff0000); my $p=pack(q(SxxxxxxP),length($f)/8,$f); \
         syscall({2},38,1,0,0,0); syscall({2},22,2,$p)==0 or die; exec @ARGV",
        libc::SYS_clone,
        libc::CLONE_NEWPID,
        libc::SYS_prctl
    );
    let go =
        |env: &Env| -> Ended { env.run(["worktree", "--", "echo it ran"]).by("perl", ["-e", &no_namespaces]).go() };
    let ended = go(&by("namespace", "")).exits(5);
    assert_eq!(ended.failure(), "sandbox-missing");
    assert!(ended.stdout.contains("namespaces cannot be made"), "{}", ended.stdout);
    let env = env();
    assert_eq!(go(&env).result()["ran"]["output"], "it ran\n");
    let doctor = env.nietz(["doctor"]).by("perl", ["-e", &no_namespaces]).go().exits(0);
    let weak = doctor.stdout.lines().find(|line| line.starts_with("weak")).expect("it is told");
    assert!(weak.contains("cgroup is in force") || weak.contains("subreaper is in force"), "{weak}");
}

#[test]
fn a_helper_that_does_nothing_any_more_is_ended_with_its_command() {
    let env = env().flow(
        "stopped",
        "local git = require('@nietz/git')\n\
         return require('@nietz').flow { name = 'stopped', summary = 's', permissions = { git = true, exec = { 'perl' } },\n\
         run = function()\n\
         git.branch('nietz/x', git.head().commit)\n\
         local tree = git.worktree { name = 'x', branch = 'nietz/x' }\n\
         local function perl(text) return tree:exec { program = { 'perl', '-MFcntl=:flock', '-e', text }, seconds = 1 } end\n\
         local first = perl('open(F, q(>held)); flock(F, LOCK_EX); kill q(STOP), getppid; sleep 1000')\n\
         return { first.over, perl('open(F, q(held)); print flock(F, LOCK_EX | LOCK_NB) ? q(free) : q(held)').output } end }",
    );
    crate::support::git::init(&env.workspace());
    let result = env.run(["stopped", "--no-sandbox"]).go().result();
    assert_eq!(result, serde_json::json!(["timeout", "free"]));
}

/// The first thread of a process is over, and another one takes memory.
const LEADER_GONE: &str = "python3 -c '\n\
    import ctypes, threading, time\n\
    def more():\n    time.sleep(0.05)\n    held = bytearray(500 << 20)\n    time.sleep(1000)\n\
    threading.Thread(target=more).start()\n\
    libc = ctypes.CDLL(None)\n\
    libc.syscall(60 if __import__(\"os\").uname().machine == \"x86_64\" else 93, 0)\n'";

#[test]
fn a_command_that_passes_a_limit_is_told_so() {
    for ends in WAYS {
        for (limit, over, script) in [
            ("processes: 20", "processes", "for i in $(seq 40); do sleep 1000 & done; wait"),
            ("megabytes: 200", "memory", "perl -e 'my $x = q(x) x 500_000_000; sleep 1000'"),
            ("megabytes: 200", "exit", "perl -e 'my $x = q(x) x 20_000_000; print length $x'"),
            (
                "megabytes: 200",
                "memory",
                "python3 -c 'import mmap, time; m = mmap.mmap(-1, 500 << 20); [m.__setitem__(at, 1) for at in range(0, len(m), 4096)]; time.sleep(1000)'",
            ),
            ("megabytes: 200", "memory", LEADER_GONE),
        ] {
            let env = by(ends, limit);
            if !there(&env, ends) {
                break;
            }
            let result = run(&env, script, &[]).result();
            assert_eq!(result["ran"]["over"], over, "{ends}, {limit}: {result}");
        }
    }
}

#[test]
fn what_is_written_to_disks_is_counted_for_all_that_it_started() {
    const TMPFS: i64 = 0x0102_1994;
    for ends in WAYS {
        let env = by(ends, "written_megabytes: 30");
        let system = rustix::fs::statfs(env.home()).expect("it is there");
        if system.f_type as i64 == TMPFS || !there(&env, ends) {
            eprintln!("not tried: what is written to memory is not counted");
            continue;
        }
        let script = "for i in 1 2 3 4 5 6; do head -c 10000000 /dev/zero > f$i; done; echo written";
        let result = run(&env, script, &[]).result();
        assert_eq!(result["ran"]["over"], "written", "{ends}: {result}");
        let env = by(ends, "written_megabytes: 30");
        assert_eq!(wrote(&env, "head -c 1000000 /dev/zero > f; echo written", &[]), "written\n");
    }
}

#[test]
fn whichever_limit_is_lower_holds_the_users_the_flows_or_the_projects() {
    let flow = |limits: &str| {
        format!(
            "local git = require('@nietz/git')\n\
             return require('@nietz').flow {{ name = 'x', summary = 's', permissions = {{ git = true, exec = {{ 'sh' }} }},\n\
             exec_limits = {limits}, run = function()\n\
             git.branch('nietz/x', git.head().commit)\n\
             local tree = git.worktree {{ name = 'x', branch = 'nietz/x' }}\n\
             return tree:exec({{ program = {{ 'sh', '-c', 'ulimit -Hn' }} }}).output end }}"
        )
    };
    for (user, flows, project, expected) in [
        ("open_files: 300", "{ open_files = 200 }", "", "200\n"),
        ("open_files: 300", "{ open_files = 400 }", "", "300\n"),
        ("open_files: 300", "{}", "open_files: 100", "100\n"),
        ("open_files: 300", "{}", "open_files: 9000", "300\n"),
    ] {
        let env = env().config(&format!("commands: {{limits: {{{user}}}}}\n")).flow("x", &flow(flows));
        let env = env.file("nietz.yaml", format!("commands: {{limits: {{{project}}}}}\n"));
        crate::support::git::init(&env.workspace());
        assert_eq!(env.run(["x"]).go().result(), expected, "{user} {flows} {project}");
    }
    let env = env().flow("x", &flow("{ processes = 0 }"));
    let ended = env.nietz(["check", "flows/x.lua"]).go();
    assert_ne!(ended.code, Some(0), "{ended:?}");
    let env = self::env().file("nietz.yaml", "commands: {ends: subreaper}\n");
    assert_eq!(env.run(["worktree", "--", "true"]).go().code, Some(1), "a project does not choose what ends commands");
}

/// A flow of two commands, side by side or one after the other.
fn pair(script: &str, body: &str) -> String {
    format!(
        "local git, task = require('@nietz/git'), require('@nietz/task')\n\
         return require('@nietz').flow {{ name = 'pair', summary = 's', permissions = {{ git = true, exec = {{ 'sh' }} }},\n\
         run = function()\n\
         local function sh(name)\n\
           git.branch('nietz/' .. name, git.head().commit)\n\
           local tree = git.worktree {{ name = name, branch = 'nietz/' .. name }}\n\
           local ok, ran = pcall(tree.exec, tree, {{ program = {{ 'sh', '-c', [==[{script}]==] }}, seconds = 10 }})\n\
           return if ok then ran.over else ran.code .. ': ' .. ran.message\n\
         end\n{body}\nend }}"
    )
}

#[test]
fn commands_side_by_side_have_their_memory_together() {
    // Each has less than it may alone, and is there until the other is over: one of the two ends.
    let script = "perl -e 'my $x = q(); $x .= q(x) x 1_000_000 for 1..150; sleep 1000'";
    let body = "local all = task.all({ a = function() return sh('a') end, b = function() return sh('b') end })\n\
                local overs = { all.a, all.b } table.sort(overs) return overs";
    for ends in WAYS {
        let env = by(ends, "run_megabytes: 250").flow("pair", &pair(script, body));
        if !there(&env, ends) {
            continue;
        }
        crate::support::git::init(&env.workspace());
        let ended = env.run(["pair"]).go();
        let overs = ended.result();
        // The one that is left runs into its time.
        assert_eq!(overs, serde_json::json!(["memory", "timeout"]), "{ends}: {ended:?}");
    }
}

#[test]
fn what_the_commands_of_a_run_write_is_counted_for_all_of_them() {
    const TMPFS: i64 = 0x0102_1994;
    let script = "for i in 1 2; do head -c 10000000 /dev/zero > f$i; sync f$i; done";
    let body = "return { sh('a'), sh('b'), sh('c') }";
    let env = env().config("commands: {limits: {run_written_megabytes: 30}}\n").flow("pair", &pair(script, body));
    let system = rustix::fs::statfs(env.home()).expect("it is there");
    if system.f_type as i64 == TMPFS {
        eprintln!("not tried: what is written to memory is not counted");
        return;
    }
    crate::support::git::init(&env.workspace());
    let overs = env.run(["pair"]).go().result();
    assert_eq!((&overs[0], &overs[1]), (&"exit".into(), &"written".into()), "{overs}");
    let refused = "command-failed: the commands of this run have written 30 MB, which is all they may";
    assert_eq!(overs[2], refused, "{overs}");
}
