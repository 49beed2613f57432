//! Checks of the guards: the sandbox of commands, git, limits, trust, and who can write what nietz believes.

use crate::cli::doctor::{CheckOutcome, CheckState, DoctorArgs, finding};
use crate::disk::owner;
use crate::error::{Code, Failure, Result};
use crate::host::exec::{Commands, with_defaults};
use crate::host::place::CommandPlace;
use crate::host::{git, path};
use crate::model::command::{CleanupMethod, CommandLine, ExecCommand, Grants};
use crate::pack::trust::folder_name;
use crate::run::access::granted_commands;
use crate::run::machine::Machine;

/// Checks whether commands can be sandboxed, and which methods can end the processes that they leave behind, by running a
/// command with each method.
pub(super) fn sandbox(machine: &Machine, _: &DoctorArgs) -> Result<Vec<CheckOutcome>> {
    let folder = tempfile::tempdir()
        .map_err(|error| Failure::new(Code::DiskFailed, format!("no temporary folder can be made: {error}")))?;
    let works =
        |method: CleanupMethod| commands(machine, Some(method)).and_then(|commands| try_out(&commands, folder.path()));
    let tried: Vec<(CleanupMethod, Result<()>)> =
        CleanupMethod::ALL.iter().map(|method| (*method, works(*method))).collect();
    let in_force = match machine.config.commands.ends {
        Some(wanted) => tried.iter().find(|(method, result)| *method == wanted && result.is_ok()),
        None => tried.iter().find(|(_, result)| result.is_ok()),
    };
    let in_force = in_force.map(|(method, _)| *method);
    let mut findings = vec![match (in_force, tried.last()) {
        (Some(_), _) => finding("sandbox", CheckState::Ok, "Landlock, and a filter of system calls"),
        (None, Some((_, Err(failure)))) => CheckOutcome {
            hint: Some("commands of flows are refused; `nietz explain sandbox-missing`".into()),
            ..finding("sandbox", CheckState::Missing, &failure.message)
        },
        (None, _) => CheckOutcome {
            hint: Some("commands of flows are refused; take `commands.ends` out of config.yaml".into()),
            ..finding("sandbox", CheckState::Missing, "what `commands.ends` names is not to be had here")
        },
    }];
    for (method, result) in &tried {
        let name = method.name();
        findings.push(match result {
            Ok(()) if in_force == Some(*method) => {
                let state = if *method == CleanupMethod::Namespace { CheckState::Ok } else { CheckState::Weak };
                let found = format!("{name} is in force: {}", describe_cleanup(*method));
                let hint = (state == CheckState::Weak)
                    .then_some("what a namespace adds stands in the list of what is not confined".into());
                CheckOutcome { hint, ..finding("ends", state, &found) }
            }
            Ok(()) => finding("ends", CheckState::Ok, format!("{name} would work, too")),
            Err(failure) => finding("ends", CheckState::Ok, format!("{name} is not to be had: {}", failure.message)),
        });
    }
    Ok(findings)
}

fn describe_cleanup(method: CleanupMethod) -> &'static str {
    match method {
        CleanupMethod::Namespace => "commands see their own processes alone, and the kernel ends them all",
        CleanupMethod::Cgroup => "the kernel ends all that a command started",
        CleanupMethod::Subreaper => "the helper ends all that a command started, one by one",
    }
}

fn try_out(commands: &Commands, folder: &std::path::Path) -> Result<()> {
    let command = ExecCommand {
        tree: String::new(),
        run: CommandLine::Program(vec!["true".to_owned()]),
        seconds: 20.0,
        idle: None,
        repeatable: false,
        output: None,
        dependencies: None,
        builds: None,
        read: Vec::new(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| Failure::new(Code::Internal, format!("a runtime cannot be made: {error}")))?;
    let result = runtime.block_on(commands.run(&command, &CommandPlace::only(folder), "doctor", &|| {}))?;
    if result.exit == 0 {
        return Ok(());
    }
    Err(Failure::new(Code::CommandFailed, format!("`true` ended with {}: {}", result.exit, result.output)))
}

fn commands(machine: &Machine, ends: Option<CleanupMethod>) -> Result<Commands> {
    Ok(Commands { ends, ..granted_commands(machine, Grants::default(), ".nietz/output".to_owned())? })
}

/// Lists the folders of `PATH` that commands do not get, because they would expose the home, a key or the workspace.
pub(super) fn programs(machine: &Machine, _: &DoctorArgs) -> Result<Vec<CheckOutcome>> {
    let hidden = commands(machine, None)?.hidden_of_path();
    if hidden.is_empty() {
        return Ok(Vec::new());
    }
    let names: Vec<String> = hidden.iter().map(|folder| folder.display().to_string()).collect();
    Ok(vec![CheckOutcome {
        hint: Some("it would show the home, a key or the workspace; name a folder in it".into()),
        ..finding("path", CheckState::Weak, format!("not shown to commands: {}", names.join(", ")))
    }])
}

pub(super) fn repositories(machine: &Machine, _: &DoctorArgs) -> Result<Vec<CheckOutcome>> {
    Ok(vec![match git::version(&path::search_path(&machine.environment)) {
        Ok(version) => finding("git", CheckState::Ok, &version),
        Err(failure) => CheckOutcome {
            hint: Some("flows that work on branches are refused; `nietz explain git-missing`".into()),
            ..finding("git", CheckState::Missing, &failure.message)
        },
    }])
}

pub(super) fn limits(machine: &Machine, _: &DoctorArgs) -> Result<Vec<CheckOutcome>> {
    let limits = with_defaults(machine.config.commands.limits);
    let shown = |limits: &[(Option<u64>, &str)]| -> String {
        let all = limits.iter().filter_map(|(limit, what)| limit.map(|limit| format!("{limit} {what}")));
        all.collect::<Vec<String>>().join(", ")
    };
    let each = shown(&[
        (limits.processes, "processes"),
        (limits.megabytes, "MB of memory"),
        (limits.written_megabytes, "MB written"),
        (limits.open_files, "open files"),
    ]);
    let all = shown(&[(limits.run_megabytes, "MB of memory"), (limits.run_written_megabytes, "MB written")]);
    let found = format!("a command has at most {each}; those of a run together {all}");
    Ok(vec![finding("limits", CheckState::Ok, &found)])
}

/// Reports what this folder is trusted with, and how many folders and packs are trusted in all.
pub(super) fn trust(machine: &Machine, _: &DoctorArgs) -> Result<Vec<CheckOutcome>> {
    let trust = match machine.trust().read() {
        Ok(trust) => trust,
        Err(failure) => {
            return Ok(vec![CheckOutcome {
                hint: Some("flows that need it are refused; `nietz check` says what is wrong with the file".into()),
                ..finding("trust", CheckState::Missing, &failure.message)
            }]);
        }
    };
    let here = folder_name(&machine.workspace).ok().map(|name| trust.of_folder(&name));
    let here = match here {
        Some(items) if !items.is_empty() => items.into_iter().collect::<Vec<_>>().join(", "),
        _ => "models, questions and documents alone".to_owned(),
    };
    let (folders, packs) = (trust.folders.len(), trust.packs.len());
    Ok(vec![finding(
        "trust",
        CheckState::Ok,
        format!("this folder: {here}; in all {folders} folders and {packs} packs"),
    )])
}

/// Checks whether other users can change the files that nietz keeps for this user, because nietz believes these files.
pub(super) fn files(machine: &Machine, _: &DoctorArgs) -> Result<Vec<CheckOutcome>> {
    let open = |folder: &std::path::PathBuf| {
        let found = std::fs::metadata(folder).ok()?;
        owner::problem(&found).map(|why| format!("{} {why}", folder.display()))
    };
    let mut folders = machine.protected_folders();
    folders.retain(|folder| *folder != machine.workspace);
    folders.sort();
    folders.dedup();
    let open: Vec<String> = folders.iter().filter_map(open).collect();
    Ok(vec![match open.is_empty() {
        true => finding("files", CheckState::Ok, "what nietz keeps for you, only you can write"),
        false => CheckOutcome {
            hint: Some("make them yours alone: chown them to you, and chmod go-w".into()),
            ..finding("files", CheckState::Weak, format!("others can write: {}", open.join("; ")))
        },
    }])
}
