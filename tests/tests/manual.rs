//! The two pages of the public manual that tests/manual has, word for word, against a started server. The pages of docs/ are played by
//! tests/docs.rs.

use kslate_tests::play;
use serde_json::Value;

/// Saving, loading, the list of what changed, and the gate.
#[test]
fn checkpoint_and_resume() {
    let stage = play::page("checkpoint-and-resume");
    // Resume is the command's name for loading; the wire has no such operation.
    let diagnoser = stage.shim.api("diag-token");
    diagnoser.put("/v1/records/incidents/x", "{}").expect(201);
    diagnoser
        .get("/v1/records/incidents/x/resume")
        .refused(404, "NOT_FOUND");
    diagnoser
        .put("/v1/records/incidents/x/resume", "{}")
        .refused(404, "NOT_FOUND");
}

/// The staged crash, and what history keeps of it.
#[test]
fn surviving_a_crash() {
    let stage = play::page("surviving-a-crash");
    let answer = stage
        .shim
        .api("diag-token")
        .get("/v1/records/incidents/inc-111/history")
        .expect(200);
    let rows: Vec<(Value, Value, Value)> = answer["history"]
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| {
            (
                row["record_version"].clone(),
                row["op"].clone(),
                row["author"].clone(),
            )
        })
        .collect();
    let expected = [
        (0, "create", "apikey:diagnoser"),
        (1, "write", "apikey:diagnoser"),
        (2, "claim", "apikey:remediator/worker-1"),
        (3, "write", "apikey:diagnoser"),
        (4, "takeover", "apikey:remediator/worker-2"),
    ];
    assert_eq!(
        rows,
        expected.map(|(version, op, author)| (version.into(), op.into(), author.into()))
    );
    assert_eq!(
        answer["history"][4]["took_over_from"],
        "apikey:remediator/worker-1"
    );

    // With a lease that outlasts the demo's patience nobody takes over.
    let output = stage.try_command("scripts/demo --lease 30 --patience 4 incidents/inc-112");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success(), "{printed}");
    assert!(
        printed.contains("worker-2  claim      HELD by apikey:remediator/worker-1\n"),
        "{printed}"
    );
    assert!(!printed.contains("took_over_from"), "{printed}");
}
