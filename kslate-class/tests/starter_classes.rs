//! The classes that come with kslate parse, and say what the manual says of them.

use kslate_class::{parse, Class, Evidence, Lease, Mode};
use serde_json::{json, Map, Value};

const INCIDENTS: &str = include_str!("../../classes/incidents.yaml");
const MIGRATIONS: &str = include_str!("../../classes/migrations.yaml");

fn class(source: &str) -> Class {
    parse(source).unwrap_or_else(|faults| panic!("{faults:#?}"))
}

#[test]
fn incidents_is_the_class_of_the_manual() {
    let class = class(INCIDENTS);
    assert_eq!(class.name, "incidents");
    let fields: Vec<&str> = class
        .fields
        .iter()
        .map(|field| field.name.as_str())
        .collect();
    assert_eq!(
        fields,
        [
            "status",
            "hypotheses",
            "planned_action",
            "actions_taken",
            "remediation"
        ]
    );
    assert_eq!(class.create, ["diagnoser"]);
    assert_eq!(class.roles_of("apikey:remediator/worker-1"), ["remediator"]);
    assert_eq!(class.roles_of("apikey:remediator"), ["remediator"]);
    assert_eq!(class.roles_of("apikey:stranger"), Vec::<&str>::new());

    let status = class.field("status").unwrap();
    assert_eq!(status.initial, Some(json!("open")));
    assert_eq!(status.read, ["diagnoser", "remediator"]);
    assert_eq!(
        status.writer_role(&["remediator", "diagnoser"]),
        Some("diagnoser")
    );
    assert_eq!(status.writer_role(&["observer"]), None);
    let refused = status.check_value("\"closed\"").unwrap_err();
    assert_eq!(
        refused.message,
        "\"closed\" is not allowed; one of: open, mitigating, resolved"
    );
    assert_eq!(refused.path, "");

    let planned = class.field("planned_action").unwrap();
    assert_eq!(
        (planned.mode, planned.evidence),
        (Mode::Cas, Evidence::Required)
    );
    let tasks: Vec<_> = class
        .task_fields()
        .map(|field| (field.name.as_str(), field.lease))
        .collect();
    assert_eq!(
        tasks,
        [(
            "remediation",
            Some(Lease {
                default_seconds: 60,
                max_seconds: 3600
            })
        )]
    );

    let rules = class.checkpoint.as_ref().unwrap();
    assert_eq!(rules.required, ["remediator"]);
    assert_eq!(
        rules.sections,
        ["goal", "decisions", "progress", "open_questions"]
    );
    assert_eq!(rules.max_bytes, 262_144);
}

#[test]
fn definition_of_incidents_fills_in_every_default_in_order() {
    let two = r#"["diagnoser","remediator"]"#;
    let patterns =
        |name: &str| format!(r#"["apikey:{name}","apikey:{name}/*","pg:{name}","pg:{name}/*"]"#);
    let expected = format!(
        concat!(
            r#"{{"roles":{{"diagnoser":{d},"remediator":{r}}},"create":["diagnoser"],"fields":{{"#,
            r#""status":{{"mode":"cas","write":{two},"read":{two},"evidence":"optional","values":["open","mitigating","resolved"],"initial":"open"}},"#,
            r#""hypotheses":{{"mode":"cas","write":["diagnoser"],"read":{two},"evidence":"optional"}},"#,
            r#""planned_action":{{"mode":"cas","write":["diagnoser"],"read":{two},"evidence":"required"}},"#,
            r#""actions_taken":{{"mode":"append","write":["remediator"],"read":{two},"evidence":"optional"}},"#,
            r#""remediation":{{"mode":"task","write":["remediator"],"read":{two},"evidence":"optional","lease":{{"default_seconds":60,"max_seconds":3600}}}}}},"#,
            r#""checkpoint":{{"required":["remediator"],"sections":["goal","decisions","progress","open_questions"],"max_bytes":262144}}}}"#
        ),
        d = patterns("diagnoser"),
        r = patterns("remediator"),
        two = two
    );
    assert_eq!(class(INCIDENTS).definition_json(), expected);
}

#[test]
fn migrations_shows_what_a_class_can_have() {
    let class = class(MIGRATIONS);
    let hint = class.field("credentials_hint").unwrap();
    assert!(hint.may_be_read_by(&["planner", "migrator"]));
    assert!(!hint.may_be_read_by(&["planner", "verifier"]));
    assert!(!hint.may_be_read_by(&[]));
    assert_eq!(
        class.field("cursor").unwrap().requires_claim.as_deref(),
        Some("move")
    );
    assert_eq!(
        class.field("verification").unwrap().overriders,
        ["operator", "planner"]
    );
    assert_eq!(
        class.checkpoint.as_ref().unwrap().requires_claim.as_deref(),
        Some("move")
    );

    let plan = class.field("plan").unwrap();
    let good =
        r#"{"source":"public.orders","target":"public.orders_v2","key":"id","batch_rows":5000}"#;
    assert_eq!(plan.check_value(good), Ok(()));
    let bad = r#"{"source":"public.orders","target":"public.orders_v2","key":"id","batch_rows":0}"#;
    assert_eq!(plan.check_value(bad).unwrap_err().path, "/batch_rows");
}

/// What an answer shows of a class is enough to write the class again.
#[test]
fn definition_parses_back_to_the_same_class() {
    for source in [INCIDENTS, MIGRATIONS] {
        let original = class(source);
        let Value::Object(shown) = serde_json::from_str(&original.definition_json()).unwrap()
        else {
            panic!("no object");
        };
        let mut written = Map::new();
        written.insert("class".into(), original.name.as_str().into());
        written.insert("description".into(), original.description.clone().into());
        written.extend(shown);
        for json in [
            Value::Object(written.clone()).to_string(),
            format!("{:#}", Value::Object(written)),
        ] {
            let again = class(&json);
            assert_eq!(again, original);
            assert_eq!(again.definition_json(), original.definition_json());
            assert_eq!(original.differences(&again), []);
        }
    }
}
