//! Names and texts are data: a database role, an identity, evidence, a reason, a key, a filter and a value that read like SQL change
//! no statement of ours, and come back as they were.

use kslate_tests::crew::{claim_id, Crew};
use kslate_tests::Session;
use serde_json::{json, Value};

/// As long as the name of a database role may be, and without blanks, as identities are.
const ODD: &str = r#"x');select(pg_terminate_backend(0));--"$$@extension@%s$1\'"#;

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[tokio::test]
async fn nothing_that_is_sent_is_read_as_sql() {
    let crew = Crew::new().await;
    let name = format!("\"{}\"", ODD.replace('"', "\"\""));
    crew.dba
        .run(&format!(
            "create role {name}; create role names_login login;
             grant kslate_user, kslate_admin to {name}; grant {name} to names_login"
        ))
        .await;
    let login = Session::login(&crew.database, "names_login").await;
    login.run(&format!("set role {name}")).await;
    let class = json!({
        "class": "t",
        "description": ODD,
        "roles": { "a": [format!("pg:{ODD}"), format!("apikey:{ODD}")] },
        "create": ["a"],
        "fields": {
            "note": { "mode": "cas", "write": ["a"], "description": ODD, "values": [ODD, 1] },
            "log": { "mode": "append", "write": ["a"] },
            "job": { "mode": "task", "write": ["a"], "override": ["a"] },
        },
    });
    login.ok("class_apply", &literal(&class.to_string())).await;
    let agent = Session::agent(&crew.database, ODD).await;
    let (odd, value) = (literal(ODD), literal(&Value::from(ODD).to_string()));
    for (session, record, author) in [
        (&login, "t/x", format!("pg:{ODD}")),
        (&agent, "t/y", format!("apikey:{ODD}")),
    ] {
        session.ok("create", &format!("'{record}'")).await;
        let written = session
            .ok(
                "write",
                &format!("'{record}', 'note', {value}, 0, {odd}, idempotency_key => {odd}"),
            )
            .await;
        assert_eq!(
            (&written["author"], &written["evidence"]),
            (&json!(author), &json!(ODD))
        );
        let again = session
            .ok(
                "write",
                &format!("'{record}', 'note', {value}, 0, {odd}, idempotency_key => {odd}"),
            )
            .await;
        assert_eq!(again, written);
        session
            .ok("append", &format!("'{record}', 'log', {value}, {odd}"))
            .await;
        let document = literal(&json!({ ODD: ODD }).to_string());
        session
            .ok("checkpoint_save", &format!("'{record}', {document}"))
            .await;
        let loaded = session.ok("checkpoint_load", &format!("'{record}'")).await;
        assert_eq!(loaded["document"], json!({ ODD: ODD }));
        session.ok("claim", &format!("'{record}', 'job'")).await;
        session
            .ok("force_release", &format!("'{record}', 'job', 1, {odd}"))
            .await;
        let filter = literal(&json!({ "note": [ODD] }).to_string());
        let claimed = session
            .ok("claim_next", &format!("'t', 'job', 60, {filter}"))
            .await;
        assert_eq!(claimed["record"], record);
        let id = claim_id(&claimed);
        session
            .ok(
                "complete",
                &format!("'{record}', 'job', {id}, {value}, {odd}"),
            )
            .await;
        let rows = session
            .rows("history", &format!("'{record}'"))
            .await
            .expect("history");
        assert_eq!(rows.len(), 7, "{rows:?}");
        assert!(rows.iter().all(|row| row["author"] == author), "{rows:?}");
        let told = rows.iter().filter(|row| row["value"] == ODD).count();
        assert_eq!(told, 3, "{rows:?}");
        assert!(rows.iter().any(|row| row["reason"] == ODD), "{rows:?}");
        // As a name it is no record, no field, no class and no role, and is told so with itself in it.
        for (function, arguments) in [
            ("get", odd.clone()),
            ("get", literal(&format!("t/{ODD}"))),
            ("write", format!("'{record}', {odd}, '1', 0")),
            ("list", odd.clone()),
            ("checkpoint_load", format!("'{record}', {odd}")),
        ] {
            let refused = session
                .call(function, &arguments)
                .await
                .expect_err("no such name");
            assert!(
                ["MALFORMED", "NOT_FOUND", "SCOPE_DENIED"].contains(&refused.error().as_str()),
                "{function}: {refused:?}"
            );
        }
    }
    assert_eq!(crew.dba.run("select * from kslate_doctor()").await, "");
    crew.consistent().await;
}
