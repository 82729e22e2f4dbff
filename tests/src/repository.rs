//! Where the checkout lies, and running its scripts.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The root of the checkout.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ lies in the checkout")
        .to_path_buf()
}

/// A script of `scripts/`, ready to run from the root, without input.
pub(crate) fn script(name: &str) -> Command {
    let mut command = Command::new(root().join("scripts").join(name));
    command.current_dir(root()).stdin(Stdio::null());
    command
}

/// Runs bash with `-euo pipefail` on a text, in the root of the checkout, with more environment.
pub fn bash(text: &str, environment: &[(&str, &str)]) -> Output {
    Command::new("bash")
        .args(["-euo", "pipefail", "-c", text])
        .current_dir(root())
        .stdin(Stdio::null())
        .envs(environment.iter().copied())
        .output()
        .expect("bash starts")
}

/// Runs a command to its end and gives what it printed; where it fails, so does the test, with all it said.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?} ended with {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_string()
}
