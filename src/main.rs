//! The `nietz` program: everything is in the library.

fn main() -> std::process::ExitCode {
    nietz::cli::main(std::env::args_os().collect(), std::env::vars_os())
}
