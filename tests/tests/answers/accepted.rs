//! The answer of every route, in the order of a record's life.

use crate::{Stage, BOTH};
use kslate_tests::{bash, root};
use serde_json::{json, Value};

const INC: &str = "/v1/records/incidents/inc-1";
const MIG: &str = "/v1/records/migrations/m-1";
const ELEMENT: &str =
    "field,mode,value,version,author,role,evidence,record_version,changed_at,claim";
const CLAIM: &str = "{state,live,owner,role,epoch,claimed_at,expires_at}";
const GRANTED: &str =
    "{record,field,owner,role,claim_id,epoch,claimed_at,expires_at,lease_seconds,took_over_from,record_version}";
const HISTORY: &str = "{record,history[{record_version,op,field,version,value,author,role,evidence,changed_at,epoch,took_over_from,reason}],next}";

#[test]
fn service_and_classes() {
    let stage = Stage::new();
    stage.told(" GET /healthz", 200, "{status}");
    let ready = stage.told(
        " GET /readyz",
        200,
        "{status,version,storage_version,read_only}",
    );
    assert_eq!(
        ready.to_string(),
        r#"{"status":"ready","version":"0.2.0","storage_version":2,"read_only":false}"#
    );
    let openapi = stage.send("", "GET", "/openapi.json", "").expect(200);
    assert!(openapi["paths"]
        .as_object()
        .is_some_and(|paths| paths.len() > 15));
    let metrics = stage.send("", "GET", "/metrics", "");
    assert_eq!(metrics.status, 200);
    assert!(metrics
        .header("content-type")
        .is_some_and(|kind| kind.starts_with("text/plain")));

    let me = stage.told("w1 GET /v1/whoami", 200, "{identity,admin,roles}");
    assert_eq!(
        me.to_string(),
        r#"{"identity":"apikey:remediator/worker-1","admin":false,"roles":{"incidents":["remediator"]}}"#
    );
    let admin = stage.told("admin GET /v1/whoami", 200, "{identity,admin,roles}");
    assert_eq!(
        admin.to_string(),
        r#"{"identity":"apikey:admin","admin":true,"roles":{}}"#
    );

    let list = stage.told(
        "stranger GET /v1/classes",
        200,
        "{classes[{class,version,description,applied_by,applied_at}],next}",
    );
    let names: Vec<&Value> = list["classes"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|class| &class["class"])
        .collect();
    assert_eq!(names, ["incidents", "migrations"]);
    let class = stage.told(
        "stranger GET /v1/classes/incidents",
        200,
        "{class,version,description,definition,source,applied_by,applied_at}",
    );
    let file =
        std::fs::read_to_string(root().join("classes/incidents.yaml")).expect("the starter class");
    assert_eq!(class["source"], file);
    let definition: Vec<&String> = class["definition"]
        .as_object()
        .expect("an object")
        .keys()
        .collect();
    assert_eq!(definition, ["roles", "create", "fields", "checkpoint"]);
    let status = json!({"mode": "cas", "write": ["diagnoser", "remediator"], "read": ["diagnoser", "remediator"],
                        "evidence": "optional", "values": ["open", "mitigating", "resolved"], "initial": "open"});
    assert_eq!(
        class["definition"]["fields"]["status"].to_string(),
        status.to_string()
    );

    let applied = "{class,version,changed,dry_run,changes[]}";
    let apply = |query: &str, source: &str| {
        stage.told(
            &format!("admin PUT /v1/classes/both{query} {source}"),
            200,
            applied,
        )
    };
    let dry = apply("?dry_run=true", BOTH);
    assert_eq!(
        (&dry["version"], &dry["changed"], &dry["dry_run"]),
        (&json!(1), &json!(true), &json!(true))
    );
    stage
        .send("admin", "GET", "/v1/classes/both", "")
        .refused(404, "NOT_FOUND");
    let first = apply("", BOTH);
    assert_eq!(
        (&first["version"], &first["changed"], &first["dry_run"]),
        (&json!(1), &json!(true), &json!(false))
    );
    let again = apply("", BOTH);
    assert_eq!(
        (&again["version"], &again["changed"], &again["changes"]),
        (&json!(1), &json!(false), &json!([]))
    );
    let more = apply(
        "",
        &format!("{BOTH}  more: {{ mode: lww, write: [first] }}\n"),
    );
    assert_eq!(
        (&more["version"], &more["changed"]),
        (&json!(2), &json!(true))
    );
    let old = stage.told(
        "both GET /v1/classes/both?version=1",
        200,
        "{class,version,description,definition,source,applied_by,applied_at}",
    );
    assert_eq!(
        (&old["version"], &old["source"], &old["applied_by"]),
        (&json!(1), &json!(BOTH), &json!("apikey:admin"))
    );
}

#[test]
fn a_record_and_its_fields() {
    let stage = Stage::new();
    let created = "{record,record_version,created,created_by,created_at}";
    stage.told(
        &format!(
            "diag PUT {INC} {{\"fields\": {{\"status\": \"mitigating\"}}, \"evidence\": \"seen\"}}"
        ),
        201,
        created,
    );
    let again = stage.told(&format!("diag PUT {INC}"), 200, created);
    assert_eq!(again["created"], false);
    let written = "{record,field,version,record_version,author,role,evidence,changed_at}";
    stage.told(&format!(r#"diag PUT {INC}/fields/planned_action {{"value": {{"b": 1, "a": 2}}, "expected_version": 0, "evidence": "status@1"}}"#), 200, written);
    let many = stage.told(
        &format!(r#"diag PATCH {INC} {{"changes": [{{"field": "hypotheses", "value": null, "expected_version": 0}}, {{"field": "status", "value": "open", "expected_version": 1}}]}}"#),
        200,
        "{record,record_version,changed_at,changes[{field,version,record_version,role}]}",
    );
    assert_eq!(many["record_version"], 3);
    assert_eq!(many["changes"][0]["record_version"], 2);
    stage.told(
        &format!(r#"w1 POST {INC}/fields/actions_taken/entries {{"value": "uncordoned", "evidence": "planned_action@1"}}"#),
        201,
        "{record,field,version,record_version,author,role,evidence,added_at}",
    );

    let record = stage.told(
        &format!("w1 GET {INC}"),
        200,
        &format!("{{record,record_version,created_by,created_at,fields[{{{ELEMENT}}}]}}"),
    );
    let fields = record["fields"].as_array().expect("fields");
    let names: Vec<&str> = fields
        .iter()
        .filter_map(|field| field["field"].as_str())
        .collect();
    assert_eq!(
        names,
        [
            "status",
            "hypotheses",
            "planned_action",
            "actions_taken",
            "remediation"
        ]
    );
    let entry = json!([{"seq": 1, "value": "uncordoned", "author": "apikey:remediator/worker-1", "role": "remediator",
        "evidence": "planned_action@1", "record_version": 4, "added_at": fields[3]["changed_at"]}]);
    assert_eq!(fields[3]["value"].to_string(), entry.to_string());
    assert_eq!(
        fields[4]["claim"].to_string(),
        r#"{"state":"open","live":false,"owner":null,"role":null,"epoch":0,"claimed_at":null,"expires_at":null}"#
    );
    let empty = stage.told(
        &format!("w1 GET {INC}?fields=status"),
        200,
        &format!("{{record,record_version,created_by,created_at,fields[{{{ELEMENT}}}]}}"),
    );
    assert_eq!(empty["fields"].as_array().map(Vec::len), Some(1));

    stage.told(
        &format!("w1 GET {INC}/fields/status"),
        200,
        &format!("{{record,{ELEMENT}}}"),
    );
    stage.told(
        &format!("w1 GET {INC}/fields/remediation"),
        200,
        &format!("{{record,{ELEMENT}{CLAIM}}}"),
    );
    stage.told(
        &format!("w1 GET {INC}/fields/actions_taken/entries"),
        200,
        "{record,field,entries[{seq,value,author,role,evidence,record_version,added_at}],next}",
    );
    stage.told(&format!("diag GET {INC}/history"), 200, HISTORY);
    stage.told(
        &format!("diag GET {INC}/blame?field=planned_action"),
        200,
        "{record,blame[{field,key,seq,version,author,role,evidence,points_to{field,version,value,author,changed_at},record_version,changed_at}]}",
    );
    let list = stage.told("diag GET /v1/records/incidents?fields=status", 200, &format!("{{records[{{record,record_version,created_by,created_at,fields[{{{ELEMENT}}}]}}],next}}"));
    assert_eq!(list["next"], Value::Null);
    stage.told(
        "diag GET /v1/records/incidents",
        200,
        "{records[{record,record_version,created_by,created_at,fields[]}],next}",
    );
}

#[test]
fn pages_of_every_list() {
    let stage = Stage::new();
    for number in 1..=3 {
        stage
            .send(
                "diag",
                "PUT",
                &format!("/v1/records/incidents/k-{number}"),
                "{}",
            )
            .expect(201);
        let entry = format!("{{\"value\": {number}}}");
        stage
            .send(
                "w1",
                "POST",
                "/v1/records/incidents/k-1/fields/actions_taken/entries",
                &entry,
            )
            .expect(201);
        let document =
            r#"{"document": {"goal": 1, "decisions": 1, "progress": 1, "open_questions": 1}}"#;
        stage
            .send(
                "w1",
                "PUT",
                "/v1/records/incidents/k-1/checkpoint",
                document,
            )
            .expect(200);
    }
    for (path, plural, id, expected) in [
        (
            "/v1/records/incidents?page_size=2",
            "records",
            "record",
            json!(["incidents/k-1", "incidents/k-2", "incidents/k-3"]),
        ),
        (
            "/v1/records/incidents/k-1/history?page_size=2",
            "history",
            "record_version",
            json!([0, 1, 2, 3]),
        ),
        (
            "/v1/records/incidents/k-1/history?page_size=1&newest_first=true",
            "history",
            "record_version",
            json!([3, 2, 1, 0]),
        ),
        (
            "/v1/records/incidents/k-1/fields/actions_taken/entries?page_size=3",
            "entries",
            "seq",
            json!([1, 2, 3]),
        ),
        (
            "/v1/records/incidents/k-1/fields/actions_taken/entries?page_size=2&newest_first=true",
            "entries",
            "seq",
            json!([3, 2, 1]),
        ),
        (
            "/v1/records/incidents/k-1/checkpoints?page_size=2",
            "checkpoints",
            "checkpoint_id",
            json!([3, 2, 1]),
        ),
    ] {
        let (mut seen, mut after) = (Vec::new(), String::new());
        loop {
            let page = stage
                .send("w1", "GET", &format!("{path}{after}"), "")
                .expect(200);
            seen.extend(
                page[plural]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|row| row[id].clone()),
            );
            match &page["next"] {
                Value::Null => break,
                Value::String(next) => after = format!("&after={next}"),
                next => after = format!("&after={next}"),
            }
            assert!(seen.len() <= 10, "{path} has no end");
        }
        assert_eq!(Value::Array(seen), expected, "{path}");
    }
}

#[test]
fn a_task_and_its_checkpoints() {
    let stage = Stage::new();
    stage.send("diag", "PUT", INC, "{}").expect(201);
    let task = format!("{INC}/fields/remediation");
    let granted = stage.told(&format!("w1 POST {task}/claim"), 200, GRANTED);
    assert_eq!(
        (&granted["lease_seconds"], &granted["took_over_from"]),
        (&json!(60), &Value::Null)
    );
    let id = &granted["claim_id"];
    stage.told(
        &format!("w1 POST {task}/renew {{\"claim_id\": {id}}}"),
        200,
        "{record,field,owner,claim_id,epoch,expires_at,lease_seconds}",
    );
    let document = r#"{"goal": "g", "decisions": 1, "progress": 2, "open_questions": 3, "aa": 4}"#;
    let saved = stage.told(&format!("w1 PUT {INC}/checkpoint {{\"document\": {document}, \"claim_id\": {id}, \"seen_version\": 0}}"), 200, "{record,role,checkpoint_id,record_version}");
    assert_eq!(
        saved.to_string(),
        r#"{"record":"incidents/inc-1","role":"remediator","checkpoint_id":1,"record_version":0}"#
    );
    stage.told(
        &format!("w1 POST {task}/release {{\"claim_id\": {id}, \"reason\": \"r\"}}"),
        200,
        "{record,field,epoch,record_version,released_at}",
    );
    stage
        .send(
            "diag",
            "PUT",
            &format!("{INC}/fields/hypotheses"),
            r#"{"value": 1, "expected_version": 0}"#,
        )
        .expect(200);
    stage.told(
        &format!("w2 GET {INC}/checkpoint"),
        200,
        "{record,role,document,record_version,changed_fields[{field,version,author,evidence}]}",
    );
    stage.told(
        &format!("w2 GET {INC}/checkpoint?checkpoint_id=1"),
        200,
        "{record,role,document,record_version,changed_fields[{field,version,author,evidence}]}",
    );
    let none = stage.told(
        &format!("diag GET {INC}/checkpoint"),
        200,
        "{record,role,document,record_version,changed_fields[{field,version,author,evidence}]}",
    );
    assert_eq!(
        (&none["document"], &none["record_version"]),
        (&Value::Null, &json!(0))
    );
    stage.told(
        &format!("w2 GET {INC}/checkpoints"),
        200,
        "{record,checkpoints[{checkpoint_id,role,record_version,author,saved_at,bytes}],next}",
    );

    let next = stage.told(
        r#"w2 POST /v1/classes/incidents/claim {"field": "remediation"}"#,
        200,
        GRANTED,
    );
    let nothing = stage.told(
        r#"w1 POST /v1/classes/incidents/claim {"field": "remediation"}"#,
        200,
        "{record}",
    );
    assert_eq!(nothing, json!({"record": null}));
    let id = &next["claim_id"];
    stage.told(
        &format!(
            "w2 POST {task}/complete {{\"claim_id\": {id}, \"value\": [1], \"evidence\": \"e\"}}"
        ),
        200,
        "{record,field,epoch,version,record_version,completed_at}",
    );
    let field = stage.told(
        &format!("w2 GET {task}"),
        200,
        &format!("{{record,{ELEMENT}{CLAIM}}}"),
    );
    assert_eq!(field["claim"]["state"], "completed");
    stage.told(
        &format!("w1 POST {task}/reopen"),
        200,
        "{record,field,version,record_version,reopened_at}",
    );

    let first = r#"{"fields": {"status": "planned"}, "evidence": "e"}"#;
    stage.told(
        &format!("plan PUT {MIG} {first}"),
        201,
        "{record,record_version,created,created_by,created_at}",
    );
    stage.told(&format!("mig POST {MIG}/fields/move/claim"), 200, GRANTED);
    let forced = stage.told(
        &format!("op POST {MIG}/fields/move/force-release {{\"expected_epoch\": 1, \"reason\": \"stuck\"}}"),
        200,
        "{record,field,released_from,epoch,record_version,released_at}",
    );
    assert_eq!(
        (&forced["released_from"], &forced["epoch"]),
        (&json!("apikey:migrator"), &json!(1))
    );
    let history = stage.told(&format!("op GET {MIG}/history"), 200, HISTORY);
    let ops: Vec<&str> = history["history"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|row| row["op"].as_str())
        .collect();
    assert_eq!(ops, ["create", "claim", "force_release"]);
}

#[test]
fn request_ids_and_times() {
    let stage = Stage::new();
    let api = stage.api("diag");
    let mine = api.request("PUT", INC, &[("X-Request-Id", "trace-1.2:3")], b"{}");
    assert_eq!(mine.header("x-request-id"), Some("trace-1.2:3"));
    // Times are RFC 3339 in UTC, whatever the database's own time zone.
    let database = stage.database.name();
    let sql = format!("alter database {database} set timezone = 'Asia/Kolkata'");
    stage.database.psql("kslate", &sql);
    let fresh = kslate_tests::Shim::start(&stage.database, kslate_tests::KEYS);
    let told = fresh.api("diag-token").get(INC).expect(200);
    let at = told["created_at"].as_str().expect("a time");
    assert!(at.ends_with("+00:00") && at.as_bytes()[10] == b'T', "{at}");
    assert_eq!(mine.json()["created_at"], at);
    let date = bash(&format!("date -u -d '{at}' +%s"), &[]);
    assert!(date.status.success(), "{date:?}");
}
