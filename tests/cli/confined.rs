//! The promise: what a command is refused, one guard after the other: each test falls when its guard is taken out.

use std::os::unix::fs::PermissionsExt;

use crate::cli::sandbox::{env, run, wrote};
use crate::support::env::Env;
use crate::support::git;

/// System calls that are refused whatever they are given.
const REFUSED: &[(&str, i64)] = &[
    ("acct", libc::SYS_acct),
    ("add_key", libc::SYS_add_key),
    ("bpf", libc::SYS_bpf),
    ("chroot", libc::SYS_chroot),
    ("delete_module", libc::SYS_delete_module),
    ("fanotify_init", libc::SYS_fanotify_init),
    ("fanotify_mark", libc::SYS_fanotify_mark),
    ("finit_module", libc::SYS_finit_module),
    ("fsconfig", libc::SYS_fsconfig),
    ("fsmount", libc::SYS_fsmount),
    ("fsopen", libc::SYS_fsopen),
    ("fspick", libc::SYS_fspick),
    ("init_module", libc::SYS_init_module),
    ("io_uring_enter", libc::SYS_io_uring_enter),
    ("io_uring_register", libc::SYS_io_uring_register),
    ("io_uring_setup", libc::SYS_io_uring_setup),
    ("kcmp", libc::SYS_kcmp),
    ("kexec_load", libc::SYS_kexec_load),
    ("keyctl", libc::SYS_keyctl),
    ("migrate_pages", libc::SYS_migrate_pages),
    ("mount", libc::SYS_mount),
    ("mount_setattr", libc::SYS_mount_setattr),
    ("move_mount", libc::SYS_move_mount),
    ("move_pages", libc::SYS_move_pages),
    ("mq_notify", libc::SYS_mq_notify),
    ("mq_open", libc::SYS_mq_open),
    ("mq_unlink", libc::SYS_mq_unlink),
    ("msgctl", libc::SYS_msgctl),
    ("msgget", libc::SYS_msgget),
    ("msgrcv", libc::SYS_msgrcv),
    ("msgsnd", libc::SYS_msgsnd),
    ("open_by_handle_at", libc::SYS_open_by_handle_at),
    ("open_tree", libc::SYS_open_tree),
    ("perf_event_open", libc::SYS_perf_event_open),
    ("pidfd_getfd", libc::SYS_pidfd_getfd),
    ("pivot_root", libc::SYS_pivot_root),
    ("process_madvise", libc::SYS_process_madvise),
    ("process_mrelease", libc::SYS_process_mrelease),
    ("process_vm_readv", libc::SYS_process_vm_readv),
    ("process_vm_writev", libc::SYS_process_vm_writev),
    ("ptrace", libc::SYS_ptrace),
    ("quotactl", libc::SYS_quotactl),
    ("quotactl_fd", libc::SYS_quotactl_fd),
    ("reboot", libc::SYS_reboot),
    ("request_key", libc::SYS_request_key),
    ("semctl", libc::SYS_semctl),
    ("semget", libc::SYS_semget),
    ("semop", libc::SYS_semop),
    ("semtimedop", libc::SYS_semtimedop),
    ("setns", libc::SYS_setns),
    ("shmat", libc::SYS_shmat),
    ("shmctl", libc::SYS_shmctl),
    ("shmget", libc::SYS_shmget),
    ("swapoff", libc::SYS_swapoff),
    ("swapon", libc::SYS_swapon),
    ("syslog", libc::SYS_syslog),
    ("umount2", libc::SYS_umount2),
    ("unshare", libc::SYS_unshare),
    ("userfaultfd", libc::SYS_userfaultfd),
    ("file_setattr", 469),
    ("listmount", 458),
    ("open_tree_attr", 467),
    ("statmount", 457),
];

/// Those of them that need rights which a command has not: the system refuses them in the same way.
const NEED_RIGHTS: &[&str] = &[
    "acct",
    "fanotify_init",
    "fsmount",
    "fsopen",
    "fspick",
    "move_mount",
    "pivot_root",
    "reboot",
    "swapoff",
    "syslog",
];

const ATTRIBUTES: &[(&str, i64)] = &[
    ("fgetxattr", libc::SYS_fgetxattr),
    ("flistxattr", libc::SYS_flistxattr),
    ("fremovexattr", libc::SYS_fremovexattr),
    ("fsetxattr", libc::SYS_fsetxattr),
    ("getxattr", libc::SYS_getxattr),
    ("lgetxattr", libc::SYS_lgetxattr),
    ("listxattr", libc::SYS_listxattr),
    ("llistxattr", libc::SYS_llistxattr),
    ("lremovexattr", libc::SYS_lremovexattr),
    ("lsetxattr", libc::SYS_lsetxattr),
    ("removexattr", libc::SYS_removexattr),
    ("setxattr", libc::SYS_setxattr),
    ("getxattrat", 464),
    ("listxattrat", 465),
    ("removexattrat", 466),
    ("setxattrat", 463),
];

const ABSENT: &[(&str, i64)] = &[
    ("clone3", libc::SYS_clone3),
    ("inotify_add_watch", libc::SYS_inotify_add_watch),
    #[cfg(target_arch = "x86_64")]
    ("inotify_init", libc::SYS_inotify_init),
    ("inotify_init1", libc::SYS_inotify_init1),
];

/// A program that makes each call with arguments that no kernel accepts, and writes its name and the number of the error.
fn calls(all: &[(&str, i64)]) -> String {
    let each = |(name, number): &(&str, i64)| {
        format!("$!=0; $r=syscall({number},-1,-1,-1,-1,-1,-1); print q({name} ), $r<0?$!+0:0, qq(\\n);")
    };
    format!("perl -e '{}'", all.iter().map(each).collect::<String>())
}

fn answers(all: &[(&str, i64)], error: i32) -> String {
    all.iter().map(|(name, _)| format!("{name} {error}\n")).collect()
}

#[test]
fn each_call_of_the_list_is_refused() {
    let env = env();
    assert_eq!(wrote(&env, &calls(REFUSED), &[]), answers(REFUSED, libc::EPERM));
}

#[test]
fn without_the_sandbox_each_is_answered_otherwise() {
    let env = env();
    let script = match rustix::process::geteuid().is_root() {
        true => format!("setpriv --reuid=65534 --regid=65534 --clear-groups {}", calls(REFUSED)),
        false => calls(REFUSED),
    };
    let said = wrote(&env, &script, &["--no-sandbox"]);
    let refused: Vec<&str> = said.lines().filter_map(|line| line.strip_suffix(" 1")).collect();
    assert_eq!(refused, NEED_RIGHTS, "what the system refuses by itself says nothing of the guard");
}

#[test]
fn files_have_no_attributes_and_no_notices_and_clone3_is_not_there() {
    let env = env();
    assert_eq!(wrote(&env, &calls(ATTRIBUTES), &[]), answers(ATTRIBUTES, libc::EOPNOTSUPP));
    let env = env.var("NIETZ_RUN", "r2");
    assert_eq!(wrote(&env, &calls(ABSENT), &[]), answers(ABSENT, libc::ENOSYS));
}

#[test]
fn neither_services_nor_inodes_nor_leases_nor_room_unwritten_can_be_had() {
    let call = |name: &str, number: i64, arguments: &str| {
        format!("$!=0; $r=syscall({number},{arguments}); print q({name} ), $r<0?$!+0:0, qq(\\n);")
    };
    let mut script = String::from(
        "use Fcntl; my $two=pack(q(ii),0,0); my $flags=pack(q(Q),0x80); sysopen(F,q(f),O_RDWR|O_CREAT); my $f=fileno(F); print F q(x); close F; sysopen(F,q(f),O_RDONLY); $f=fileno(F);",
    );
    let lines = [
        ("streams", libc::SYS_socketpair, "1,1,0,$two", 0),
        ("datagrams", libc::SYS_socketpair, "1,2,0,$two", libc::EPERM),
        ("datagrams that do not wait", libc::SYS_socketpair, "1,2|2048|524288,0,$two", libc::EPERM),
        ("raw", libc::SYS_socketpair, "1,3,0,$two", libc::EPERM),
        ("lease", libc::SYS_fcntl, "$f,1024,0", libc::EPERM),
        ("notice", libc::SYS_fcntl, "$f,1026,1", libc::EPERM),
        ("flags", libc::SYS_fcntl, "$f,1,0", 0),
        ("flags of the inode", libc::SYS_ioctl, "$f,0x40086602,$flags", libc::EOPNOTSUPP),
        ("its project", libc::SYS_ioctl, "$f,0x401c5820,$flags", libc::EOPNOTSUPP),
        ("its seal", libc::SYS_ioctl, "$f,0x40806685,$flags", libc::EOPNOTSUPP),
        ("what is there to be read", libc::SYS_ioctl, "$f,0x541B,$flags", 0),
        ("room", libc::SYS_fallocate, "$f,0,0,4096", libc::EOPNOTSUPP),
        ("room behind the end", libc::SYS_fallocate, "$f,1,0,4096", libc::EOPNOTSUPP),
        // The answer of the system: it is open for reading.
        ("a hole", libc::SYS_fallocate, "$f,3,0,4096", libc::EBADF),
    ];
    for (name, number, arguments, _) in lines {
        script.push_str(&call(name, number, arguments));
    }
    let expected: String = lines.iter().map(|(name, _, _, error)| format!("{name} {error}\n")).collect();
    for net in [&[][..], &["--allow-net"]] {
        assert_eq!(wrote(&env(), &format!("perl -e '{script}'"), net), expected);
    }
}

#[test]
fn no_kind_of_namespace_can_be_made_by_clone() {
    let env = env();
    let flags = [
        ("cgroup", libc::CLONE_NEWCGROUP),
        ("ipc", libc::CLONE_NEWIPC),
        ("net", libc::CLONE_NEWNET),
        ("mounts", libc::CLONE_NEWNS),
        ("processes", libc::CLONE_NEWPID),
        ("users", libc::CLONE_NEWUSER),
        ("names", libc::CLONE_NEWUTS),
        // Without a namespace, this is no call that a kernel accepts.
        ("none", 0),
    ];
    let each = |(name, flag): &(&str, i32)| {
        let (number, flags) = (libc::SYS_clone, flag | libc::CLONE_THREAD);
        format!("$!=0; $r=syscall({number},{flags},0,0,0,0); print q({name} ), $r<0?$!+0:0, qq(\\n);")
    };
    let script = format!("perl -e '{}'", flags.iter().map(each).collect::<String>());
    let said = wrote(&env, &script, &[]);
    assert_eq!(said, "cgroup 1\nipc 1\nnet 1\nmounts 1\nprocesses 1\nusers 1\nnames 1\nnone 22\n");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn calls_cannot_be_made_by_their_other_numbers() {
    let all = [("getpid", 0x4000_0000 | libc::SYS_getpid), ("ptrace", 0x4000_0000 | 521)];
    assert_eq!(wrote(&env(), &calls(&all), &[]), answers(&all, libc::EPERM));
}

#[test]
fn limits_and_priorities_of_others_cannot_be_set_and_its_own_can() {
    for ends in ["namespace", "subreaper"] {
        let env = env().config(&format!("commands: {{ends: {ends}}}\n"));
        if !super::ends::there(&env, ends) {
            continue;
        }
        let call = |name: &str, number: i64, arguments: &str| {
            format!("$!=0; $r=syscall({number},{arguments}); print q({name} ), $r<0?$!+0:0, qq(\\n);")
        };
        let new = "my $new=pack(q(QQ),100,100); my $m=pack(q(Q),1); my $p=getppid;";
        let mut script = String::from(new);
        script.push_str(&call("prlimit", libc::SYS_prlimit64, "$p,7,$new,0"));
        script.push_str(&call("own", libc::SYS_prlimit64, "0,7,$new,0"));
        script.push_str(&call("read", libc::SYS_prlimit64, "$p,7,0,$new"));
        script.push_str(&call("nice", libc::SYS_setpriority, "0,0,5"));
        script.push_str(&call("ioprio", libc::SYS_ioprio_set, "1,0,0x6000"));
        script.push_str(&call("affinity", libc::SYS_sched_setaffinity, "0,8,$m"));
        let mut expected = String::from("prlimit 1\nown 0\nread 0\nnice 0\nioprio 0\naffinity 0\n");
        if ends == "subreaper" {
            for (name, number, arguments) in [
                ("other affinity", libc::SYS_sched_setaffinity, "$p,8,$m"),
                ("other attributes", libc::SYS_sched_setattr, "$p,0,0"),
                ("other parameters", libc::SYS_sched_setparam, "$p,0"),
                ("other scheduler", libc::SYS_sched_setscheduler, "$p,-1,0"),
                ("other nice", libc::SYS_setpriority, "0,$p,9"),
                ("nice of all", libc::SYS_setpriority, "2,0,9"),
                ("other ioprio", libc::SYS_ioprio_set, "1,$p,0x6000"),
                ("ioprio of all", libc::SYS_ioprio_set, "3,0,0x6000"),
            ] {
                script.push_str(&call(name, number, arguments));
                expected.push_str(&format!("{name} 1\n"));
            }
        }
        assert_eq!(wrote(&env, &format!("perl -e '{script}'"), &[]), expected, "{ends}");
    }
}

#[test]
fn a_command_has_no_rights_and_can_have_none_again() {
    let env = env();
    let script = "grep -E 'CapPrm|CapEff|CapBnd|NoNewPrivs|Seccomp:' /proc/self/status | tr -d '\\t'; \
                  perl -e 'print syscall(157,27,0,0,0,0), qq(\\n)'";
    let said = wrote(&env, script, &[]);
    assert!(said.contains("CapPrm:0000000000000000\nCapEff:0000000000000000\n"), "{said}");
    assert!(said.contains("NoNewPrivs:1\nSeccomp:2\n"), "{said}");
    if rustix::process::geteuid().is_root() {
        // No root, no fixups, no ambient ones: each with its lock.
        assert!(said.ends_with("\n207\n"), "{said}");
    }
}

/// A program that has the kernel answer these calls as if it did not know them, and then becomes what follows it.
fn without(calls: &[i64]) -> String {
    let mut filter = String::from("pack(q(SCCL),0x20,0,0,0)");
    for call in calls {
        filter.push_str(&format!(".pack(q(SCCL),0x15,0,1,{call}).pack(q(SCCL),0x06,0,0,0x50026)"));
    }
    filter.push_str(".pack(q(SCCL),0x06,0,0,0x7fff0000)");
    format!(
        "my $f={filter}; my $p=pack(q(SxxxxxxP),length($f)/8,$f); syscall({0},38,1,0,0,0); \
         syscall({0},22,2,$p)==0 or die; exec @ARGV",
        libc::SYS_prctl
    )
}

#[test]
fn without_a_sandbox_commands_are_refused() {
    let landlock = [libc::SYS_landlock_create_ruleset];
    for (what, calls) in [("Landlock", &landlock), ("a filter of calls", &[libc::SYS_seccomp])] {
        let env = env();
        let ended = env
            .run(["worktree", "--", "echo it ran > /tmp/it-ran; echo it ran"])
            .by("perl", ["-e", &without(calls)])
            .go()
            .exits(5);
        assert_eq!(ended.failure(), "sandbox-missing", "{what}");
        assert!(!ended.stdout.contains("it ran\n"), "{what}");
        let doctor = env.nietz(["doctor"]).by("perl", ["-e", &without(calls)]).go().exits(5);
        assert!(doctor.stdout.starts_with("missing  sandbox"), "{what}: {}", doctor.stdout);
    }
}

#[test]
fn limits_of_the_kernel_are_set() {
    let env = env().config("commands: {limits: {open_files: 200}}\n");
    // Blocks of 512 bytes.
    let said = wrote(&env, "ulimit -c; ulimit -Hc; ulimit -f; ulimit -Hf; ulimit -Hn", &[]);
    assert_eq!(said, "0\n0\n8388608\n8388608\n200\n");
}

#[test]
fn what_is_open_in_who_started_it_is_closed() {
    let env = env();
    let ended = env
        .run(["worktree", "--", "(echo written >&9) 2>/dev/null; ls /proc/self/fd | tr '\\n' ' '"])
        .by("sh", ["-c", "exec 9>>outside; exec \"$@\"", "sh"])
        .go();
    // The last one is that by which `ls` reads.
    assert_eq!(ended.result()["ran"]["output"], "0 1 2 3 ");
    assert_eq!(env.read("outside"), "");
}

#[test]
fn signals_that_were_ignored_are_not() {
    let env = env();
    let ended = env
        .run(["worktree", "--", "grep SigIgn /proc/self/status"])
        .by("sh", ["-c", "trap '' HUP QUIT USR1; exec \"$@\"", "sh"])
        .go();
    assert_eq!(ended.result()["ran"]["output"], "SigIgn:\t0000000000000000\n");
}

#[test]
fn no_device_can_be_opened_but_those_that_mean_nothing() {
    let env = env();
    let folders = ["/dev", "/dev/pts"].into_iter().filter_map(|folder| std::fs::read_dir(folder).ok());
    let files = folders
        .flatten()
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_dir() && !kind.is_symlink()));
    let mut names: Vec<String> = files.map(|entry| entry.path().display().to_string()).collect();
    names.sort();
    let script = format!(
        "for f in {}; do {{ true < $f; }} 2>/dev/null && echo $f; done; cut -d' ' -f1,6 /proc/$$/stat",
        names.join(" ")
    );
    let said = wrote(&env, &script, &[]);
    let (devices, session) = said.trim_end().rsplit_once('\n').expect("several lines");
    assert_eq!(devices, "/dev/full\n/dev/null\n/dev/ptmx\n/dev/pts/ptmx\n/dev/random\n/dev/urandom\n/dev/zero");
    let (id, session) = session.split_once(' ').expect("two numbers");
    assert_eq!(id, session, "it leads its own session, and so has no terminal");
}

#[test]
fn of_etc_only_what_programs_need_is_read() {
    let env = env();
    let script = "for f in /etc/shadow /etc/gshadow /etc/sudoers /etc/ssl/private /etc/ssh /etc/machine-info; do \
                  [ -e $f ] && { ls $f/ || cat $f; } >/dev/null 2>&1 && echo $f; done; cat /etc/passwd /etc/nsswitch.conf >/dev/null && echo read";
    assert_eq!(wrote(&env, script, &[]), "read\n");
}

#[test]
fn a_path_that_leads_to_the_home_does_not_show_it() {
    for (name, value) in [
        ("PATH", "/usr/bin:/bin:{home}"),
        ("PATH", "/usr/bin:/bin:/usr/.."),
        ("PATH", "/usr/bin:/bin:{home}/link"),
        ("PATH", "/usr/bin:/bin:{home}/.ssh"),
        ("GOROOT", "{home}/sub/.."),
        ("CARGO_HOME", "{home}/link/bin/.."),
        ("JAVA_HOME", "/etc"),
    ] {
        let env = env();
        let home = env.home();
        for folder in ["sub", "bin", ".ssh"] {
            std::fs::create_dir(home.join(folder)).expect("the home can be written");
        }
        std::fs::write(home.join(".ssh/id"), "private\n").expect("the home can be written");
        std::os::unix::fs::symlink(&home, home.join("link")).expect("a link can be made");
        let shown = home.display().to_string();
        let env = env.var(name, &value.replace("{home}", &shown));
        let script = format!("cat {shown}/secret {shown}/.ssh/id /etc/shadow 2>/dev/null; echo $PATH");
        let said = wrote(&env, &script, &[]);
        assert_eq!(said, "/usr/bin:/bin\n", "{name}={value}");
    }
}

#[test]
fn the_doctor_says_which_folders_of_path_are_not_shown() {
    let env = env();
    let home = env.home().display().to_string();
    let env = env.var("PATH", &format!("/usr/bin:/bin:{home}"));
    let said = env.nietz(["doctor", "--json"]).go().exits(0).stdout;
    assert!(said.contains(&format!("not shown to commands: {home}\"")), "{said}");
}

/// Writes files of the home.
fn at_home(env: &Env, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = env.home().join(path);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("the home can be written");
        std::fs::write(path, text).expect("the home can be written");
    }
}

#[test]
fn configuration_of_build_tools_is_there_without_keys() {
    let env = env();
    at_home(
        &env,
        &[
            (".cargo/config.toml", "[net]\noffline = true\n[registry]\ntoken = \"planted-1\"\n"),
            (".cargo/credentials.toml", "[registry]\ntoken = \"planted-2\"\n"),
            (".npmrc", "registry=https://me:planted-3@r.example/\n//r.example/:_authToken=planted-4\n"),
            (".config/pip/pip.conf", "[global]\nindex-url = https://me:planted-5@pip.example/simple\n"),
        ],
    );
    let home = env.home().display().to_string();
    let script = format!(
        "cat $HOME/.npmrc $XDG_CONFIG_HOME/pip/pip.conf; cat $CARGO_HOME/config.toml 2>&1; \
         cat {home}/.cargo/credentials.toml {home}/.npmrc {home}/.config/pip/pip.conf 2>/dev/null; true"
    );
    let said = wrote(&env, &script, &[]);
    assert!(!said.contains("planted"), "{said}");
    let rest = "registry=https://r.example/\n[global]\nindex-url = https://pip.example/simple\n";
    assert!(said.starts_with(rest), "{said}");
    if super::ends::there(&env, "namespace") {
        assert_eq!(said, format!("{rest}[net]\noffline = true\n[registry]\n"));
    }
}

#[test]
fn configuration_without_keys_is_read_where_it_is() {
    let env = env().config("commands: {ends: subreaper}\n");
    at_home(&env, &[(".cargo/config.toml", "[net]\noffline = true\n")]);
    assert_eq!(wrote(&env, "cat $CARGO_HOME/config.toml", &[]), "[net]\noffline = true\n");
}

#[test]
fn nobody_else_may_enter_what_is_made_for_a_command() {
    let env = env();
    let script = "cp /bin/sh rootsh; chmod 4755 rootsh; dirname $HOME; stat -c %a $(dirname $HOME) .";
    let result = run(&env, script, &[]).result();
    let said = result["ran"]["output"].as_str().expect("it is text");
    assert_eq!(said.split_once('\n').expect("three lines").1, "700\n700\n");
    let tree = std::path::Path::new(result["path"].as_str().expect("a path"));
    for folder in [tree, tree.parent().expect("it has one")] {
        let mode = std::fs::metadata(folder).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}", folder.display());
    }
}

#[test]
fn folders_in_one_another_are_cleaned_in_a_time_that_grows_with_their_number() {
    let env = env().flow(
        "deep",
        "local git = require('@nietz/git')\n\
         return require('@nietz').flow { name = 'deep', summary = 's', permissions = { git = true, exec = { 'perl' } },\n\
         run = function()\n\
         git.branch('nietz/x', git.head().commit)\n\
         local tree = git.worktree { name = 'x', branch = 'nietz/x' }\n\
         local ran = tree:exec { program = { 'perl', '-e', 'mkdir q(top); for (1..1900) { mkdir q(d); chdir q(d) or die } print q(made)' } }\n\
         tree:restore()\n\
         return { ran = ran.output, left = tree:find('**').paths } end }",
    );
    git::init(&env.workspace());
    let result = env.run(["deep"]).go().result();
    assert_eq!(result["ran"], "made");
    assert_eq!(result["left"], serde_json::json!(["README", "flows/deep.lua", "flows/worktree.lua", "src/a.txt"]));
}

#[test]
fn memory_is_shared_among_the_processes_of_a_command_and_with_nobody_else() {
    let env = env().config("commands: {ends: namespace}\n");
    if !super::ends::there(&env, "namespace") {
        return;
    }
    let script = r#"python3 -c '
import multiprocessing, os
def more(lock, sum):
    with lock:
        sum.value += 1
multiprocessing.set_start_method("fork")
lock, sum = multiprocessing.Lock(), multiprocessing.Value("i", 0)
all = [multiprocessing.Process(target=more, args=(lock, sum)) for _ in range(3)]
[one.start() for one in all]
[one.join() for one in all]
open("/dev/shm/mine", "w").close()
print(sum.value, os.listdir("/dev/shm"))'"#;
    let other = tempfile::Builder::new().prefix("nietz-test-").tempfile_in("/dev/shm").expect("it can be written");
    assert_eq!(wrote(&env, script, &[]), "3 ['mine']\n");
    let left = other.path().with_file_name("mine");
    assert!(!left.exists(), "it is the machine's own that was written");
}

#[test]
fn an_environment_around_programs_and_what_the_user_names_are_read_and_keys_never() {
    let env = env();
    for (path, text) in [
        ("envs/a/bin/tool", "x"),
        ("envs/a/pyvenv.cfg", "home = /usr/bin"),
        ("envs/a/lib/module.py", "module"),
        ("plain/bin/tool", "x"),
        ("plain/lib/module.py", "module"),
        ("caches/one", "cached"),
        (".ssh/id_rsa", "key"),
    ] {
        let path = env.home().join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
    let home = env.home().display().to_string();
    let env = env
        .var("PATH", &format!("{home}/envs/a/bin:{home}/plain/bin:/usr/bin:/bin"))
        .config("commands: {read: [~/caches, ~/not/there]}\n");
    let script = format!(
        "for f in envs/a/lib/module.py plain/lib/module.py caches/one .ssh/id_rsa; do cat {home}/$f 2>/dev/null || echo no; echo; done"
    );
    assert_eq!(wrote(&env, &script, &[]).split_whitespace().collect::<Vec<_>>(), ["module", "no", "cached", "no"]);
    for place in ["~/.ssh", "~/.ssh/id_rsa", "/home/..", "/etc"] {
        let env = super::sandbox::env().config(&format!("commands: {{read: [{place}]}}\n"));
        let ssh = env.home().join(".ssh");
        std::fs::create_dir_all(&ssh).expect("a folder");
        std::fs::write(ssh.join("id_rsa"), "key").expect("a file");
        let ended = run(&env, "echo ran", &[]);
        assert!(
            ended.stderr.contains("commands.read") || ended.stdout.contains("commands.read"),
            "{place}: {}",
            ended.stderr
        );
    }
}

#[test]
fn who_runs_a_command_that_misses_something_is_told_once_what_its_place_does_not_have() {
    let missing = "ended with 127. If it works for you, its place may be why: a worktree has nothing that git ignores";
    let ended = run(&env(), ".venv/bin/pytest -q", &[]);
    assert_eq!(ended.stderr.matches(missing).count() + ended.stdout.matches(missing).count(), 1, "{}", ended.stderr);
    for (script, args) in
        [("exit 3", &[][..]), ("echo Permission denied", &[]), (".venv/bin/pytest -q", &["--no-sandbox"])]
    {
        let ended = run(&env(), script, args);
        assert!(!format!("{}{}", ended.stderr, ended.stdout).contains("its place may be why"), "{script}");
    }
    // What the user's own folder has is named, whatever the program says for want of it.
    let env = env();
    env.write(".env", "APP_MODE=test\n");
    let ended = run(&env, "echo \"KeyError: 'APP_MODE'\"; exit 1", &[]);
    let told = "ended with 1. If it works for you, its place may be why: a worktree has nothing that git ignores (here: `.env`)";
    assert!(format!("{}{}", ended.stderr, ended.stdout).contains(told), "{}", ended.stderr);
}
