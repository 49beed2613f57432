//! The promise: what is the user's own comes from the user's folders. No variable that is missing or that is no whole
//! path makes the folder that `nietz` was started in one of them.

use crate::support::env::Env;

/// A checkout that has what would be configuration if its folder were a home, and it is none that can be read.
fn checkout() -> Env {
    let env = Env::new().without("NIETZ_HOME");
    let (data, state) = (env.home().join("data"), env.home().join("state"));
    let env = env.var("XDG_DATA_HOME", &data.display().to_string()).var("XDG_STATE_HOME", &state.display().to_string());
    let cache = env.home().join("cache").display().to_string();
    [".config/nietz/config.yaml", "cfg/nietz/config.yaml", "config.yaml"]
        .into_iter()
        .fold(env.var("XDG_CACHE_HOME", &cache), |env, path| env.file(path, "nonsense: [\n"))
}

#[test]
fn the_folder_that_it_is_started_in_is_nobodys_home() {
    let whole = checkout().var("XDG_CONFIG_HOME", "cfg").nietz(["flows"]).go().exits(0);
    assert_eq!(whole.stderr, "");
    // Here the system's list of users says what the home is, whose configuration is whatever it is.
    for env in [checkout().without("HOME"), checkout().var("HOME", ""), checkout().var("HOME", ".")] {
        let ended = env.nietz(["flows"]).go();
        let work = env.workspace().display().to_string();
        assert!(!ended.stderr.contains(&work) && !ended.stderr.contains("nonsense"), "{ended:?}");
    }
    // The same folder is taken where the user names it.
    let env = checkout();
    let cfg = env.path("cfg").display().to_string();
    let named = env.var("XDG_CONFIG_HOME", &cfg).nietz(["flows"]).go();
    assert!(named.code != Some(0) && named.stderr.contains("cfg/nietz/config.yaml"), "{named:?}");
}

#[test]
fn a_home_of_its_own_is_a_whole_path() {
    let refused = checkout().var("NIETZ_HOME", ".").nietz(["flows"]).go().exits(1);
    assert!(refused.stderr.contains("error[config-invalid]: NIETZ_HOME is `.`"), "{}", refused.stderr);
}
