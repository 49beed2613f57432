//! The promise: commands find the toolchains and the caches of the user's home as the tools lay them out, without the network;
//! they read them, change nothing there for good, and see none of the keys that stand beside them.

use std::os::unix::fs::PermissionsExt;

use super::dependencies::{has, project, ran, run};
use crate::support::env::Env;

/// A home with files of a toolchain; what begins with `#!` can be run.
fn with_files(files: &[(&str, &str)]) -> Env {
    let env = project(&[]);
    for (path, text) in files {
        let place = env.home().join(path);
        std::fs::create_dir_all(place.parent().expect("a file has a folder")).expect("a folder can be made");
        std::fs::write(&place, text).expect("it can be written");
        let mode = if text.starts_with("#!") { 0o755 } else { 0o644 };
        std::fs::set_permissions(&place, std::fs::Permissions::from_mode(mode)).expect("it is ours");
    }
    env
}

/// Runs a script, and then one that writes over all files and beside them; holds that nothing of the home has changed.
#[track_caller]
fn is_read_and_kept(files: &[(&str, &str)], path: Option<&str>, script: &str, expected: &str) {
    for (run_name, config) in [("r1", "{}\n"), ("r2", "commands: {ends: subreaper}\n")] {
        let env = with_files(files).config(config).var("NIETZ_RUN", run_name);
        let home = env.home().display().to_string();
        let env = match path {
            Some(folder) => env.var("PATH", &format!("{home}/{folder}:/usr/bin:/bin")),
            None => env,
        };
        let script = script.replace("HOME_OF_USER", &home);
        // Without a namespace, modes are not confined.
        let change = if run_name == "r1" { "chmod 777" } else { "true" };
        let spoil: String = files
            .iter()
            .map(|(path, _)| format!("{{ echo x > '{home}/{path}'; echo x > '{home}/{path}.new'; {change} '{home}/{path}'; }} 2>/dev/null; "))
            .collect();
        let ended = run(&env, &[&script, &format!("{spoil} true"), &script]);
        assert_eq!(ran(&ended), [format!("0: {expected}"), "0: ".to_owned(), format!("0: {expected}")], "{config}");
        for (path, text) in files {
            let place = env.home().join(path);
            assert_eq!(std::fs::read_to_string(&place).expect("it is there"), *text, "{path}");
            let mode = std::fs::metadata(&place).expect("it is there").permissions().mode() & 0o777;
            assert_eq!(mode, if text.starts_with("#!") { 0o755 } else { 0o644 }, "{path}");
            assert!(!env.home().join(format!("{path}.new")).exists(), "{path}");
        }
    }
}

#[test]
fn gradles_caches_and_wrapper_are_read_and_its_properties_are_not() {
    is_read_and_kept(
        &[
            (".gradle/caches/modules-2/files-2.1/org.example/dep/1.0/dep.jar", "a dependency\n"),
            (".gradle/wrapper/dists/gradle-9-bin/x/gradle-9/bin/gradle", "#!/bin/sh\necho gradle 9\n"),
            (".gradle/gradle.properties", "key=secret\n"),
        ],
        None,
        "cd HOME_OF_USER/.gradle; cat caches/modules-2/files-2.1/org.example/dep/1.0/dep.jar; \
         wrapper/dists/gradle-9-bin/x/gradle-9/bin/gradle; cat gradle.properties 2>/dev/null || echo no properties",
        "a dependency\ngradle 9\nno properties\n",
    );
}

#[test]
fn mavens_repository_and_wrapper_are_read_and_its_settings_are_not() {
    is_read_and_kept(
        &[
            (".m2/repository/org/example/dep/1.0/dep-1.0.pom", "<project/>\n"),
            (".m2/wrapper/dists/apache-maven-3/bin/mvn", "#!/bin/sh\necho maven 3\n"),
            (".m2/settings.xml", "<password/>\n"),
        ],
        None,
        "cd HOME_OF_USER/.m2; cat repository/org/example/dep/1.0/dep-1.0.pom; wrapper/dists/apache-maven-3/bin/mvn; \
         cat settings.xml 2>/dev/null || echo no settings",
        "<project/>\nmaven 3\nno settings\n",
    );
}

#[test]
fn a_python_of_pyenvs_is_found_by_its_shim() {
    is_read_and_kept(
        &[
            (".pyenv/shims/python9", "#!/bin/sh\nexec \"$PYENV_ROOT/libexec/pyenv\" exec python9 \"$@\"\n"),
            (
                ".pyenv/libexec/pyenv",
                "#!/bin/sh\nexec \"$PYENV_ROOT/versions/$(cat \"$PYENV_ROOT/version\")/bin/$2\"\n",
            ),
            (".pyenv/version", "9.1.0\n"),
            (".pyenv/versions/9.1.0/bin/python9", "#!/bin/sh\ncat \"$PYENV_ROOT/versions/9.1.0/lib/python9/dep.py\"\n"),
            (".pyenv/versions/9.1.0/lib/python9/dep.py", "a module\n"),
        ],
        Some(".pyenv/shims"),
        "python9",
        "a module\n",
    );
}

#[test]
fn a_node_of_nvms_is_found_by_its_path_and_by_its_script() {
    is_read_and_kept(
        &[
            (".nvm/nvm.sh", "nvm() { \"$NVM_DIR/versions/node/$(cat \"$NVM_DIR/alias/default\")/bin/node9\"; }\n"),
            (".nvm/alias/default", "v9.1.0\n"),
            (".nvm/versions/node/v9.1.0/bin/node9", "#!/bin/sh\ncat \"${0%/bin/*}/lib/node_modules/dep/index.js\"\n"),
            (".nvm/versions/node/v9.1.0/lib/node_modules/dep/index.js", "a global module\n"),
        ],
        Some(".nvm/versions/node/v9.1.0/bin"),
        "node9; . \"$NVM_DIR/nvm.sh\"; nvm",
        "a global module\na global module\n",
    );
}

#[test]
fn a_toolchain_of_rustups_and_cargos_registry_are_read_and_its_key_is_not() {
    is_read_and_kept(
        &[
            (".cargo/bin/rustc9", "#!/bin/sh\nexec \"$RUSTUP_HOME/toolchains/stable/bin/rustc9\"\n"),
            (".cargo/registry/cache/index/dep-1.0.0.crate", "a crate\n"),
            (".cargo/credentials.toml", "token\n"),
            (".rustup/settings.toml", "default_toolchain = \"stable\"\n"),
            (".rustup/toolchains/stable/bin/rustc9", "#!/bin/sh\ncat \"$RUSTUP_HOME/settings.toml\"\n"),
        ],
        Some(".cargo/bin"),
        "rustc9; cat \"$CARGO_HOME/registry/cache/index/dep-1.0.0.crate\"; cat \"$CARGO_HOME/credentials.toml\" 2>/dev/null || echo no key",
        "default_toolchain = \"stable\"\na crate\nno key\n",
    );
}

#[test]
fn gos_modules_and_what_it_has_built_are_read() {
    is_read_and_kept(
        &[
            ("go/pkg/mod/example.org/dep@v1.0.0/dep.go", "package dep\n"),
            ("go/bin/tool9", "#!/bin/sh\necho a tool\n"),
            (".cache/go-build/00/00aa-a", "an archive\n"),
        ],
        Some("go/bin"),
        "cat \"$GOPATH/pkg/mod/example.org/dep@v1.0.0/dep.go\" HOME_OF_USER/.cache/go-build/00/00aa-a; tool9",
        "package dep\nan archive\na tool\n",
    );
    if !has("/usr/bin/go") && !std::path::Path::new("/usr/bin/go").exists() {
        return;
    }
    // Go itself looks there.
    let env = with_files(&[
        ("go/pkg/mod/cache/lock", ""),
        (".cache/go-build/README", "This directory holds cached build artifacts.\n"),
    ]);
    let home = env.home().display().to_string();
    assert_eq!(
        ran(&run(&env, &["go env GOMODCACHE GOCACHE"])),
        [format!("0: {home}/go/pkg/mod\n{home}/.cache/go-build\n")]
    );
}

#[test]
fn pythons_processes_work_when_they_are_forked_or_spawned() {
    if !has("/usr/bin/python3") {
        return;
    }
    let script = "import multiprocessing as m, sys\n\ndef double(n):\n    return 2 * n\n\n\nif __name__ == '__main__':\n    with m.get_context(sys.argv[1]).Pool(2) as pool:\n        \
                  print(pool.map(double, [1, 2]))\n";
    let env = project(&[("work.py", script)]);
    let ran =
        ran(&run(&env, &["python3 work.py fork; python3 work.py spawn", "python3 work.py forkserver 2>&1 | tail -1"]));
    assert_eq!(ran[0], "0: [2, 4]\n[2, 4]\n");
    // The README says why.
    assert!(ran[1].contains("Operation not permitted"), "{}", ran[1]);
}
