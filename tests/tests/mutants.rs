//! tests/mutants breaks each promise on purpose; here only that its list is complete and its changes apply. `make soak` makes them.
//!
//! Red without any file of tests/mutants, and when what one changes has changed.

use kslate_tests::bash;

#[test]
fn the_list_is_complete_and_each_applies() {
    let checked = bash("tests/mutants/run --check", &[]);
    let told = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success(), "{told}");
    assert!(told.contains("mutants, each applies"), "{told}");
}
