//! Every rule of a definition, with the line and path that its breach is told at.

use kslate_class::{parse, Fault};

/// A class without faults; cases replace one text of it. Line 1 is `class`.
const GOOD: &str = "\
class: incidents
description: Text.
roles:
  diagnoser: [apikey:diagnoser]
  remediator: [apikey:remediator]
create: [diagnoser]
fields:
  status:
    mode: cas
    write: [diagnoser]
    values: [open, resolved]
    initial: open
  log:
    mode: append
    write: [remediator]
  work:
    mode: task
    write: [remediator]
    lease: { default_seconds: 60, max_seconds: 3600 }
checkpoint:
  required: [remediator]
  sections: [goal]
";

fn faults(source: &str) -> Vec<Fault> {
    parse(source)
        .err()
        .unwrap_or_else(|| panic!("no fault in:\n{source}"))
}

/// (replace, by, line, path, part of the message)
type Case = (&'static str, &'static str, u64, &'static str, &'static str);

fn check(cases: &[Case]) {
    assert!(parse(GOOD).is_ok());
    for (old, new, line, path, message) in cases {
        assert_eq!(
            GOOD.matches(old).count(),
            1,
            "{old:?} is not once in the good definition"
        );
        let found = faults(&GOOD.replace(old, new));
        assert_eq!(found.len(), 1, "{new:?} is one fault: {found:#?}");
        let fault = &found[0];
        assert_eq!(
            (fault.line, fault.path.as_str()),
            (Some(*line), *path),
            "{new:?}: {fault:?}"
        );
        assert!(fault.message.contains(message), "{new:?}: {fault:?}");
    }
}

#[test]
fn keys() {
    check(&[
        ("description: Text.", "descripton: Text.", 2, "descripton", "unknown key \"descripton\"; known: class, description, roles, create, fields, checkpoint"),
        ("    initial: open", "    inital: open", 12, "fields.status.inital", "known: mode, write, read, evidence"),
        ("sections: [goal]", "section: [goal]", 22, "checkpoint.section", "known: required, sections, max_bytes, requires_claim"),
        ("max_seconds: 3600", "maximum: 3600", 19, "fields.work.lease.maximum", "known: default_seconds, max_seconds"),
        ("description: Text.", "class: incidents", 2, "class", "duplicate key \"class\""),
        ("    values: [open, resolved]", "    mode: lww\n    values: [open, resolved]", 11, "fields.status.mode", "duplicate key \"mode\""),
        ("class: incidents\n", "", 1, "", "class is missing"),
        ("    mode: append\n", "", 13, "fields.log", "mode is missing"),
        ("    mode: append\n    write: [remediator]", "    mode: append", 13, "fields.log", "write is missing"),
    ]);
}

#[test]
fn whole_blocks_missing() {
    let found = faults("class: a\n");
    let messages: Vec<&str> = found.iter().map(|fault| fault.message.as_str()).collect();
    assert_eq!(messages, ["roles is missing", "fields is missing"]);
}

#[test]
fn types() {
    check(&[
        (
            "description: Text.",
            "description: 5",
            2,
            "description",
            "must be text, is a number; write it in quotes",
        ),
        (
            "description: Text.",
            "description: [a]",
            2,
            "description",
            "must be text, is a list",
        ),
        (
            "description: Text.",
            "description:",
            2,
            "description",
            "must be text, is nothing (null)",
        ),
        (
            "create: [diagnoser]",
            "create: diagnoser",
            6,
            "create",
            "must be a list of role names, is text",
        ),
        (
            "[apikey:diagnoser]",
            "apikey:diagnoser",
            4,
            "roles.diagnoser",
            "must be a list of identity patterns, is text",
        ),
        (
            "[apikey:diagnoser]",
            "[5]",
            4,
            "roles.diagnoser[0]",
            "must be text, is a number",
        ),
        (
            "lease: { default_seconds: 60, max_seconds: 3600 }",
            "lease: 60",
            19,
            "fields.work.lease",
            "must be a mapping",
        ),
        (
            "sections: [goal]",
            "sections: { goal: 1 }",
            22,
            "checkpoint.sections",
            "must be a list of section names, is a mapping",
        ),
        (
            "    values: [open, resolved]",
            "    values: open",
            11,
            "fields.status.values",
            "must be a list of values, is text",
        ),
        (
            "sections: [goal]",
            "max_bytes: big",
            22,
            "checkpoint.max_bytes",
            "must be a whole number, is text",
        ),
    ]);
    let found = faults("just text\n");
    assert_eq!(found[0].message, "must be a mapping (name: value), is text");
    assert_eq!(
        faults("- a\n- b\n")[0].message,
        "must be a mapping (name: value), is a list"
    );
    assert_eq!(faults("class: a\nroles: []\nfields: 5\n").len(), 2);
}

#[test]
fn names_and_modes() {
    check(&[
        (
            "class: incidents",
            "class: Incidents",
            1,
            "class",
            "\"Incidents\" is no class name",
        ),
        (
            "  log:",
            "  Log:",
            13,
            "fields.Log",
            "\"Log\" is no field name",
        ),
        (
            "  log:",
            "  a.b:",
            13,
            "fields.a.b",
            "\"a.b\" is no field name",
        ),
        (
            "mode: append",
            "mode: csa",
            14,
            "fields.log.mode",
            "unknown mode \"csa\": one of cas, lww, append, task",
        ),
        (
            "mode: append",
            "mode: CAS",
            14,
            "fields.log.mode",
            "unknown mode \"CAS\"",
        ),
        (
            "    mode: append",
            "    mode: append\n    evidence: always",
            15,
            "fields.log.evidence",
            "unknown evidence \"always\": one of optional, required",
        ),
    ]);
    assert_eq!(
        faults(&GOOD.replace("mode: append", "mode: csa"))[0].message,
        "unknown mode \"csa\": one of cas, lww, append, task"
    );
}

#[test]
fn roles_and_patterns() {
    check(&[
        ("[apikey:diagnoser]", "[]", 4, "roles.diagnoser", "is empty"),
        (
            "[apikey:diagnoser]",
            "[\"review*\"]",
            4,
            "roles.diagnoser[0]",
            "\"review*\" can match nothing",
        ),
        (
            "[apikey:diagnoser]",
            "[apikey:a, \"apikey:review*\"]",
            4,
            "roles.diagnoser[1]",
            "only wildcard is /*",
        ),
        (
            "[apikey:diagnoser]",
            "[apikey:a, apikey:a]",
            4,
            "roles.diagnoser[1]",
            "pattern \"apikey:a\" is listed twice",
        ),
        (
            "create: [diagnoser]",
            "create: [diagnosr]",
            6,
            "create[0]",
            "unknown role \"diagnosr\"; roles of this class: diagnoser, remediator",
        ),
        ("create: [diagnoser]", "create: []", 6, "create", "is empty"),
        (
            "    write: [diagnoser]",
            "    write: [x]",
            10,
            "fields.status.write[0]",
            "unknown role \"x\"",
        ),
        (
            "    write: [diagnoser]",
            "    write: []",
            10,
            "fields.status.write",
            "is empty",
        ),
        (
            "    write: [diagnoser]",
            "    write:\n      - diagnoser\n      - diagnoser",
            12,
            "fields.status.write[1]",
            "role \"diagnoser\" is listed twice",
        ),
        (
            "    write: [diagnoser]",
            "    write: [diagnoser]\n    read: [q]",
            11,
            "fields.status.read[0]",
            "unknown role \"q\"",
        ),
        (
            "    write: [diagnoser]",
            "    write: [diagnoser]\n    read: []",
            11,
            "fields.status.read",
            "is empty",
        ),
        (
            "required: [remediator]",
            "required: [z]",
            21,
            "checkpoint.required[0]",
            "unknown role \"z\"",
        ),
    ]);
}

#[test]
fn what_a_mode_cannot_have() {
    check(&[
        (
            "    mode: append",
            "    mode: append\n    lease: { max_seconds: 5 }",
            15,
            "fields.log.lease",
            "only task fields have lease; this one is append",
        ),
        (
            "    mode: append",
            "    mode: append\n    override: [diagnoser]",
            15,
            "fields.log.override",
            "only task fields have override",
        ),
        (
            "    mode: append",
            "    mode: append\n    initial: 1",
            15,
            "fields.log.initial",
            "only cas and lww fields have an initial value",
        ),
        (
            "    mode: task",
            "    mode: task\n    initial: 1",
            18,
            "fields.work.initial",
            "only cas and lww fields have an initial value",
        ),
        (
            "    mode: task",
            "    mode: task\n    requires_claim: work",
            18,
            "fields.work.requires_claim",
            "its own holder only",
        ),
        (
            "    mode: append",
            "    mode: append\n    requires_claim: status",
            15,
            "fields.log.requires_claim",
            "\"status\" is cas; requires_claim names a task field of this class (it has: work)",
        ),
        (
            "    mode: append",
            "    mode: append\n    requires_claim: wrok",
            15,
            "fields.log.requires_claim",
            "unknown field \"wrok\"",
        ),
        (
            "    mode: task",
            "    mode: task\n    override: [x]",
            18,
            "fields.work.override[0]",
            "unknown role \"x\"",
        ),
    ]);
}

#[test]
fn values_initial_schema() {
    check(&[
        (
            "    initial: open",
            "    initial: closed",
            12,
            "fields.status.initial",
            "\"closed\" is not allowed; one of: open, resolved",
        ),
        (
            "    values: [open, resolved]",
            "    values: []",
            11,
            "fields.status.values",
            "is empty",
        ),
        (
            "    values: [open, resolved]",
            "    values: [open, 1, 1.0]",
            11,
            "fields.status.values[2]",
            "value 1.0 is listed twice",
        ),
        (
            "    values: [open, resolved]",
            "    schema: { type: integer }",
            12,
            "fields.status.initial",
            "is refused by the schema of the field: \"open\" is not of type \"integer\"",
        ),
        (
            "    mode: append",
            "    mode: append\n    schema: { type: nubmer }",
            15,
            "fields.log.schema",
            "is no JSON Schema that can be used at /type",
        ),
        (
            "    mode: append",
            "    mode: append\n    schema: text",
            15,
            "fields.log.schema",
            "must be a JSON Schema",
        ),
        (
            "    mode: append",
            "    mode: append\n    schema: { $ref: \"https://example.com/s.json\" }",
            15,
            "fields.log.schema",
            "is no JSON Schema that can be used",
        ),
        (
            "    mode: append",
            "    mode: append\n    schema: { $ref: \"file:///etc/passwd\" }",
            15,
            "fields.log.schema",
            "is no JSON Schema that can be used",
        ),
        (
            "    mode: append",
            "    mode: append\n    schema: { $ref: \"#/nowhere\" }",
            15,
            "fields.log.schema",
            "is no JSON Schema that can be used",
        ),
        (
            "    mode: append",
            "    mode: append\n    schema: { pattern: \"(?=a)b\" }",
            15,
            "fields.log.schema",
            "is no JSON Schema that can be used",
        ),
        (
            "    mode: append",
            "    mode: append\n    schema: { type: string }\n    values: [a, 5]",
            16,
            "fields.log.values[1]",
            "the schema refuses it",
        ),
        (
            "    mode: append",
            "    mode: append\n    values: [1e400000]",
            15,
            "fields.log.values[0]",
            "beyond what jsonb can hold",
        ),
        (
            "    mode: append",
            "    mode: append\n    values: [\"a\\0b\"]",
            15,
            "fields.log.values[0]",
            "NUL character",
        ),
    ]);
}

#[test]
fn leases_and_sizes() {
    check(&[
        (
            "default_seconds: 60",
            "default_seconds: 0",
            19,
            "fields.work.lease.default_seconds",
            "0 is out of range: a whole number from 1 to 31536000",
        ),
        (
            "default_seconds: 60",
            "default_seconds: 3601",
            19,
            "fields.work.lease.default_seconds",
            "3601 is more than max_seconds 3600",
        ),
        (
            "default_seconds: 60",
            "default_seconds: 1.5",
            19,
            "fields.work.lease.default_seconds",
            "1.5 is out of range",
        ),
        (
            "max_seconds: 3600",
            "max_seconds: 31536001",
            19,
            "fields.work.lease.max_seconds",
            "31536001 is out of range",
        ),
        (
            "max_seconds: 3600",
            "max_seconds: 99999999999999999999",
            19,
            "fields.work.lease.max_seconds",
            "is out of range",
        ),
        (
            "sections: [goal]",
            "max_bytes: 0",
            22,
            "checkpoint.max_bytes",
            "0 is out of range: a whole number from 1 to 1048576",
        ),
        (
            "sections: [goal]",
            "max_bytes: 1048577",
            22,
            "checkpoint.max_bytes",
            "1048577 is out of range",
        ),
        (
            "sections: [goal]",
            "sections: [goal, goal]",
            22,
            "checkpoint.sections[1]",
            "section \"goal\" is listed twice",
        ),
        (
            "sections: [goal]",
            "sections: [\"\"]",
            22,
            "checkpoint.sections[0]",
            "a section has a name",
        ),
        (
            "sections: [goal]",
            "requires_claim: log",
            22,
            "checkpoint.requires_claim",
            "\"log\" is append",
        ),
    ]);
}

#[test]
fn the_gate() {
    check(&[
        ("    initial: open", "    initial: resolved", 12, "fields.status.initial", "status cannot start as resolved"),
        ("  status:", "  state:", 21, "checkpoint.required", "there is none"),
        ("    mode: cas\n    write: [diagnoser]\n    values: [open, resolved]\n    initial: open", "    mode: append\n    write: [diagnoser]", 19, "checkpoint.required", "status is append"),
    ]);
    let open_gate = GOOD
        .replace("initial: open", "initial: resolved")
        .replace("required: [remediator]", "required: []");
    assert!(parse(&open_gate).is_ok());
}

#[test]
fn unquoted_scalars_that_parsers_disagree_about() {
    for word in ["no", "No", "NO", "yes", "on", "off", "Off", "y", "N"] {
        let found = faults(&GOOD.replace("open, resolved]", &format!("open, {word}]")));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            (found[0].line, found[0].path.as_str()),
            (Some(11), "fields.status.values[1]")
        );
        let meaning = if word.to_lowercase().starts_with('n') || word.to_lowercase() == "off" {
            "false"
        } else {
            "true"
        };
        let expected = format!("\"{word}\" is read differently by different YAML parsers: write \"{word}\" in quotes or {meaning}");
        assert_eq!(found[0].message, expected);
    }
    for text in [
        "012",
        "-012",
        "0o17",
        "0b11",
        "1_000",
        "1:30",
        "190:20:30",
        "2026-11-29",
        "2026-11-29T10:00:00Z",
        "00",
        "01.5",
        "+0x1F",
    ] {
        let found = faults(&GOOD.replace("open, resolved]", &format!("open, {text}]")));
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert!(
            found[0]
                .message
                .contains("is read differently by different YAML parsers"),
            "{text}: {found:?}"
        );
    }
    for text in [".inf", "-.INF", ".nan"] {
        let found = faults(&GOOD.replace("open, resolved]", &format!("open, {text}]")));
        assert!(
            found[0].message.contains("is no JSON number"),
            "{text}: {found:?}"
        );
    }
    let found = faults(&GOOD.replace("  log:", "  no:"));
    assert_eq!(
        (found[0].line, found[0].path.as_str()),
        (Some(13), "fields.no")
    );
    let found = faults(&GOOD.replace("  log:", "  5:"));
    assert_eq!(found[0].message, "a key must be text; write it in quotes");
}

#[test]
fn all_faults_come_at_once_in_order_of_lines() {
    let source = "\
class: Bad Name
roles:
  r: [apikey:r, review*]
  s: []
fields:
  a: { mode: csa, write: [r, q], extra: 1 }
  b: { write: [r] }
  c: { mode: cas, write: [r], initial: no }
checkpoint: { required: [q], max_bytes: 0 }
";
    let found: Vec<(Option<u64>, String)> = faults(source)
        .into_iter()
        .map(|f| (f.line, f.path))
        .collect();
    let expected = [
        (1, "class"),
        (3, "roles.r[1]"),
        (4, "roles.s"),
        (6, "fields.a.extra"),
        (6, "fields.a.mode"),
        (6, "fields.a.write[1]"),
        (7, "fields.b"),
        (8, "fields.c.initial"),
        (9, "checkpoint.required[0]"),
        (9, "checkpoint.max_bytes"),
    ];
    assert_eq!(
        found,
        expected.map(|(line, path)| (Some(line), path.to_owned()))
    );
}

#[test]
fn too_many_roles_and_fields() {
    let many = |count: usize, prefix: &str, value: &str| -> String {
        (0..count)
            .map(|n| format!("  {prefix}{n}: {value}\n"))
            .collect()
    };
    let source = |roles: usize, fields: usize| {
        format!(
            "class: c\nroles:\n{}fields:\n{}",
            many(roles, "r", "[apikey:r]"),
            many(fields, "f", "{ mode: lww, write: [r0] }")
        )
    };
    assert!(parse(&source(50, 200)).is_ok());
    assert_eq!(
        faults(&source(51, 1))[0].message,
        "has 51 roles; a class has at most 50"
    );
    assert_eq!(
        faults(&source(1, 201))[0].message,
        "has 201 fields; a class has at most 200"
    );
    assert_eq!(faults("class: c\nroles: {}\nfields: {}\n").len(), 2);
}

#[test]
fn a_fault_serializes_as_the_wire_has_it() {
    let fault = &faults(&GOOD.replace("mode: append", "mode: csa"))[0];
    assert_eq!(
        serde_json::to_string(fault).unwrap(),
        r#"{"line":14,"path":"fields.log.mode","message":"unknown mode \"csa\": one of cas, lww, append, task"}"#
    );
    assert_eq!(
        fault.to_string(),
        "line 14: fields.log.mode: unknown mode \"csa\": one of cas, lww, append, task"
    );
}
