//! Hostile values through SQL: each is stored exactly or refused clearly, and nothing that was stored breaks a later read.

use crate::{Stage, RECORD};
use kslate_tests::{checksum, Answer};
use serde_json::value::RawValue;

/// A name, an SQL expression of type jsonb, and whether it may be stored.
fn values() -> Vec<(&'static str, &'static str, bool)> {
    vec![
        ("1e400", "'1e400'::jsonb", true),
        ("1e131071", "'1e131071'::jsonb", true),
        ("-1e-16383", "'-1e-16383'::jsonb", true),
        (
            "30 digits",
            "'123456789012345678901234567890.10'::jsonb",
            true,
        ),
        (
            "100 levels",
            "(repeat('[', 100) || repeat(']', 100))::jsonb",
            true,
        ),
        (
            "101 levels",
            "(repeat('[', 101) || repeat(']', 101))::jsonb",
            false,
        ),
        (
            "9,000 levels",
            "(repeat('[', 9000) || repeat(']', 9000))::jsonb",
            false,
        ),
        (
            "6,000 levels of objects",
            "(repeat('{\"a\":', 6000) || '1' || repeat('}', 6000))::jsonb",
            false,
        ),
        ("10 MB of text", "to_jsonb(repeat('x', 10000000))", false),
        (
            "400,000 numbers",
            "(select jsonb_agg(n) from generate_series(1, 400000) n)",
            false,
        ),
        (
            "10 MB of one number each",
            "(select jsonb_agg('1e131071'::jsonb) from generate_series(1, 80))",
            false,
        ),
        (
            "escapes that double in size",
            "to_jsonb(repeat('\\', 600000))",
            false,
        ),
        (
            "a key of 3 kB",
            "jsonb_build_object(repeat('k', 3000), 1)",
            true,
        ),
        ("brackets in text", "to_jsonb(repeat('[\"', 5000))", true),
        (
            "control characters",
            "to_jsonb(E'\\x01\\x1f\\x7f'::text)",
            true,
        ),
        (
            "50,000 keys",
            "(select jsonb_object_agg('k' || n, n) from generate_series(1, 50000) n)",
            true,
        ),
    ]
}

/// Every way that a value comes in, `$v` standing for it.
const WAYS: [&str; 8] = [
    "select from kslate_write('incidents/inc-1', 'hypotheses', $v, \
       (select version from kslate.field where record = 'incidents/inc-1' and field = 'hypotheses'), identity => 'apikey:diagnoser')",
    "select from kslate_write_many('incidents/inc-1', jsonb_build_array(jsonb_build_object('field', 'hypotheses', 'value', $v, 'expected_version', \
       (select version from kslate.field where record = 'incidents/inc-1' and field = 'hypotheses'))), identity => 'apikey:diagnoser')",
    "select from kslate_append('incidents/inc-1', 'actions_taken', $v, identity => 'apikey:remediator')",
    "select from kslate_create('incidents/new-' || (select count(*) from kslate.record), jsonb_build_object('hypotheses', $v), identity => 'apikey:diagnoser')",
    "select from kslate_checkpoint_save('incidents/inc-1', jsonb_build_object('goal', $v, 'decisions', 1, 'progress', 1, 'open_questions', 1), \
       identity => 'apikey:remediator')",
    "update kslate.field set value = $v where record = 'incidents/inc-1' and field = 'hypotheses'",
    "insert into kslate.field (record, field, value) values ('incidents/inc-1', 'planned_action', $v) \
       on conflict (record, field) do update set value = excluded.value",
    "select from kslate_complete('incidents/inc-1', 'remediation', (select claim_id from kslate_claim('incidents/inc-1', 'remediation', \
       identity => 'apikey:remediator')), $v, identity => 'apikey:remediator') \
     union all select from kslate_reopen('incidents/inc-1', 'remediation', identity => 'apikey:remediator')",
];

/// A 200 whose body is JSON. Read without building it: it may nest deeper than a parser likes.
fn reads(answer: &Answer) -> bool {
    answer.status == 200 && serde_json::from_slice::<&RawValue>(&answer.body).is_ok()
}

#[test]
fn every_value_by_every_way() {
    let stage = Stage::new();
    let database = &stage.database;
    let born = database.psql("kslate", "select pg_postmaster_start_time()");
    let api = stage.api("diag-token");
    let mut wrong = Vec::new();
    let mut before = checksum(database);
    for (name, value, good) in values() {
        for way in WAYS {
            let sql = way.replace("$v", value);
            // 262144 bytes of a checkpoint, whose document is a level deeper than the value.
            let wrapped = way.contains("checkpoint");
            match database.try_psql("kslate", &sql) {
                Ok(_) if !good => wrong.push(format!("{name}: stored by {way}")),
                Ok(_) => before = checksum(database),
                Err(told) => {
                    let clear = ["22023", "54000", "23514"]
                        .iter()
                        .any(|state| told.contains(&format!("ERROR:  {state}: ")))
                        && told.contains("DETAIL:  {\"error\":");
                    if !clear || (good && !wrapped) {
                        let told: String = told.chars().take(400).collect();
                        wrong.push(format!("{name}: {way}: {told}"));
                    }
                    if checksum(database) != before {
                        wrong.push(format!("{name}: refused and left a trace: {way}"));
                    }
                }
            }
            for (token, read) in [
                ("diag-token", ""),
                ("diag-token", "/history?newest_first=true&page_size=3"),
                ("diag-token", "/fields/hypotheses"),
                (
                    "w1-token",
                    "/fields/actions_taken/entries?newest_first=true&page_size=1",
                ),
                ("w1-token", "/checkpoint"),
            ] {
                let answer = stage.api(token).get(&format!("{RECORD}{read}"));
                if !reads(&answer) {
                    wrong.push(format!("{name}: GET {read} after {way}: {}", answer.status));
                }
            }
        }
        let answer = api.get(&format!("{RECORD}/blame"));
        if !reads(&answer) {
            wrong.push(format!("{name}: GET /blame: {}", answer.status));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Exactly: digits neither lost nor rounded.
    for (value, stored) in [
        ("1e131071", format!("1{}", "0".repeat(131_071))),
        ("1e400", format!("1{}", "0".repeat(400))),
        ("-1e-16383", format!("-0.{}1", "0".repeat(16_382))),
    ] {
        let sql = WAYS[0].replace("$v", &format!("'{value}'::jsonb"));
        database.psql("kslate", &sql);
        let answer = api.get(&format!("{RECORD}/fields/hypotheses"));
        assert!(
            answer.text().contains(&format!("\"value\":{stored},")),
            "{value}"
        );
    }
    // Nothing crashed on the way.
    assert_eq!(
        database.psql("kslate", "select pg_postmaster_start_time()"),
        born
    );
}

#[test]
fn other_arguments() {
    let stage = Stage::new();
    let database = &stage.database;
    let backend = "select pg_backend_pid()";
    let before = checksum(database);
    let mut wrong = Vec::new();
    for (call, state) in [
        ("kslate_write(null, 'hypotheses', '1', 1)", "22023"),
        ("kslate_write('incidents/inc-1', null, '1', 1)", "22023"),
        ("kslate_write('incidents/inc-1', 'hypotheses', null, 1)", "22023"),
        ("kslate_write('incidents/inc-1', 'hypotheses', '1', -1)", "22023"),
        ("kslate_write('incidents/inc-1', 'hypotheses', '1', -9223372036854775808)", "22023"),
        ("kslate_write('incidents/inc-1', 'hypotheses', '1', 9223372036854775807)", "22023"),
        ("kslate_write('incidents/inc-1', 'hypotheses', '1', 1, repeat('x', 10000000))", "22023"),
        ("kslate_write('incidents/inc-1', 'hypotheses', '1', 1, idempotency_key => '')", "22023"),
        ("kslate_write('incidents/inc-1', 'hypotheses', '1', 1, idempotency_key => repeat('k', 129))", "22023"),
        ("kslate_write('incidents/inc-1', 'hypotheses', '1', 1, idempotency_key => 'é')", "22023"),
        ("kslate_write('', 'hypotheses', '1', 1)", "22023"),
        ("kslate_write('incidents', 'hypotheses', '1', 1)", "22023"),
        ("kslate_write('incidents/', 'hypotheses', '1', 1)", "22023"),
        ("kslate_write('/inc-1', 'hypotheses', '1', 1)", "22023"),
        ("kslate_write('incidents/inc-1/x', 'hypotheses', '1', 1)", "22023"),
        ("kslate_write('incidents/' || repeat('k', 10000000), 'hypotheses', '1', 1)", "22023"),
        ("kslate_write('incidents/inc-1', repeat('f', 10000000), '1', 1)", "P0002"),
        ("kslate_claim('incidents/inc-1', 'remediation', 'nan')", "22023"),
        ("kslate_claim('incidents/inc-1', 'remediation', 'infinity')", "22023"),
        ("kslate_claim('incidents/inc-1', 'remediation', '-infinity')", "22023"),
        ("kslate_claim('incidents/inc-1', 'remediation', 1e18)", "22023"),
        ("kslate_claim('incidents/inc-1', 'remediation', 1.5)", "22023"),
        ("kslate_claim('incidents/inc-1', 'remediation', 0)", "22023"),
        ("kslate_claim(null, null)", "22023"),
        ("kslate_renew('incidents/inc-1', 'remediation', null)", "22023"),
        ("kslate_release('incidents/inc-1', 'remediation', null)", "22023"),
        ("kslate_complete('incidents/inc-1', 'remediation', null)", "22023"),
        ("kslate_checkpoint_save('incidents/inc-1', null)", "22023"),
        ("kslate_checkpoint_save('incidents/inc-1', '[]')", "22023"),
        ("kslate_checkpoint_save('incidents/inc-1', '{}', 'remediator', -1)", "22023"),
        ("kslate_create(null)", "22023"),
        ("kslate_create('incidents/inc-9', '[]')", "22023"),
        ("kslate_write_many('incidents/inc-1', null)", "22023"),
        ("kslate_write_many('incidents/inc-1', '{}')", "22023"),
        ("kslate_history('incidents/inc-1', page_size => 0)", "22023"),
        ("kslate_history('incidents/inc-1', page_size => -1)", "22023"),
        ("kslate_history('incidents/inc-1', page_size => 2147483647)", "22023"),
        ("kslate_entries('incidents/inc-1', 'actions_taken', page_size => 0)", "22023"),
        ("kslate_get('incidents/inc-1', array[null])", "22023"),
        ("kslate_get('incidents/inc-1', array['nope'])", "P0002"),
        ("kslate_get(null)", "22023"),
        ("kslate_list('incidents', '[]')", "22023"),
        ("kslate_list(null)", "22023"),
        ("kslate_list('incidents', page_size => 0)", "22023"),
        ("kslate_class(null)", "22023"),
        ("kslate_class('nope')", "P0002"),
        ("kslate_class_apply(null)", "22023"),
        ("kslate_class_apply('')", "22023"),
        ("kslate_class_apply(repeat('[', 100000))", "22023"),
        ("kslate_class_apply(repeat('x', 10000000))", "22023"),
    ] {
        let identity = if call.starts_with("kslate_class") { "null" } else if call.contains("remediation") || call.contains("checkpoint") { "'apikey:remediator'" } else { "'apikey:diagnoser'" };
        let call = call.trim_end_matches(')').to_string() + &")".repeat(call.len() - call.trim_end_matches(')').len() - 1);
        let sql = format!("select * from {call}, identity => {identity})");
        match database.try_psql("kslate", &sql) {
            Ok(printed) => wrong.push(format!("accepted: {sql}: {printed}")),
            Err(told) => {
                if !(told.contains(&format!("ERROR:  {state}: ")) && told.contains("DETAIL:  {\"error\":")) {
                    let told: String = told.chars().take(400).collect();
                    wrong.push(format!("{sql} (wanted {state}): {told}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(checksum(database), before);
    assert!(!database.psql("kslate", backend).is_empty());
}
