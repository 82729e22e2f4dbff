//! What `kslate class apply` says it changes.

use kslate_class::{parse, Class, Difference, Mode, Orphans};

const BASE: &str = "
class: jobs
roles:
  worker: [apikey:worker]
  boss: [apikey:boss]
fields:
  status: { mode: cas, write: [worker], values: [open, resolved], initial: open }
  notes: { mode: append, write: [worker] }
  work: { mode: task, write: [worker] }
checkpoint: { required: [worker], sections: [goal] }
";

fn class(source: &str) -> Class {
    parse(source).unwrap_or_else(|faults| panic!("{faults:#?}"))
}

/// The differences after replacing one text of the base by another.
fn after(old: &str, new: &str) -> Vec<Difference> {
    assert!(BASE.contains(old), "{old}");
    class(BASE).differences(&class(&BASE.replace(old, new)))
}

fn texts(differences: &[Difference]) -> Vec<String> {
    differences.iter().map(ToString::to_string).collect()
}

#[test]
fn the_same_definition_changes_nothing() {
    assert_eq!(class(BASE).differences(&class(BASE)), []);
    assert_eq!(after("[open, resolved]", "[ \"open\", 'resolved' ]"), []);
}

#[test]
fn additions_and_removals_of_fields() {
    let rollback = "  work: { mode: task, write: [worker] }\n  rollback: { mode: cas, write: [worker, boss] }\n";
    let added = after("  work: { mode: task, write: [worker] }\n", rollback);
    // Whoever may write some field creates by default.
    assert_eq!(
        added[0].text,
        "records created by worker, boss (was worker)"
    );
    assert_eq!(added[1].path, "fields.rollback");
    assert_eq!(added[1].orphans, None);
    assert!(
        texts(&added).contains(&"field rollback added (cas, written by worker, boss)".to_owned())
    );

    let removed = after("  notes: { mode: append, write: [worker] }\n", "");
    assert_eq!(texts(&removed), ["field notes removed"]);
    assert_eq!(removed[0].path, "fields.notes");
    assert_eq!(
        removed[0].orphans,
        Some(Orphans::FieldRemoved {
            field: "notes".into()
        })
    );
}

#[test]
fn a_changed_mode_may_orphan_history() {
    let changed = after("notes: { mode: append", "notes: { mode: lww");
    assert_eq!(texts(&changed), ["field notes has mode lww (was append)"]);
    let orphans = Orphans::ModeChanged {
        field: "notes".into(),
        from: Mode::Append,
        to: Mode::Lww,
    };
    assert_eq!(changed[0].orphans, Some(orphans));
}

#[test]
fn a_removed_role_may_orphan_checkpoints() {
    let removed = after("  boss: [apikey:boss]\n", "");
    assert_eq!(removed[0].text, "role boss removed");
    assert_eq!(
        removed[0].orphans,
        Some(Orphans::RoleRemoved {
            role: "boss".into()
        })
    );
    // Whoever read by default is a change too.
    assert!(texts(&removed).contains(&"field status read by worker (was worker, boss)".to_owned()));
}

#[test]
fn every_key_of_a_field_shows() {
    for (old, new, text) in [
        (
            "write: [worker], values",
            "write: [boss, worker], values",
            "field status written by boss, worker (was worker)",
        ),
        (
            "values: [open, resolved]",
            "values: [open, stuck, resolved]",
            "field status has values open, stuck, resolved (was open, resolved)",
        ),
        (
            ", initial: open",
            "",
            "field status has initial value none (was \"open\")",
        ),
        (
            "append, write: [worker]",
            "append, write: [worker], read: [boss]",
            "field notes read by boss (was worker, boss)",
        ),
        (
            "append, write: [worker]",
            "append, write: [worker], evidence: required",
            "field notes has evidence required (was optional)",
        ),
        (
            "append, write: [worker]",
            "append, write: [worker], description: x",
            "field notes has another description",
        ),
        (
            "append, write: [worker]",
            "append, write: [worker], schema: { type: string }",
            "field notes has a schema now",
        ),
        (
            "append, write: [worker]",
            "append, write: [worker], requires_claim: work",
            "field notes requires the claim of work (was nothing)",
        ),
        (
            "task, write: [worker]",
            "task, write: [worker], lease: { max_seconds: 30 }",
            "field work has lease 30 s, at most 30 s (was 60 s, at most 3600 s)",
        ),
        (
            "task, write: [worker]",
            "task, write: [worker], override: [boss]",
            "field work force-released by boss (was none)",
        ),
        (
            "required: [worker]",
            "required: [worker, boss]",
            "checkpoint required of worker, boss (was worker)",
        ),
        (
            "sections: [goal]",
            "sections: []",
            "checkpoint has sections none (was goal)",
        ),
        (
            "sections: [goal]",
            "sections: [goal], max_bytes: 10",
            "checkpoint max_bytes 10 (was 262144)",
        ),
        (
            "sections: [goal]",
            "sections: [goal], requires_claim: work",
            "saving a checkpoint requires the claim of work (was nothing)",
        ),
        (
            "[apikey:boss]",
            "[pg:boss]",
            "role boss held by pg:boss (was apikey:boss)",
        ),
        (
            "fields:",
            "create: [boss]\nfields:",
            "records created by boss (was worker)",
        ),
        (
            "class: jobs",
            "class: jobs\ndescription: x",
            "description changed",
        ),
    ] {
        let changed = texts(&after(old, new));
        assert!(changed.contains(&text.to_owned()), "{new}: {changed:?}");
    }
}

#[test]
fn the_order_of_fields_and_roles_is_part_of_a_class() {
    let moved =
        "  work: { mode: task, write: [worker] }\n  notes: { mode: append, write: [worker] }\n";
    let notes_first =
        "  notes: { mode: append, write: [worker] }\n  work: { mode: task, write: [worker] }\n";
    assert_eq!(
        texts(&after(notes_first, moved)),
        ["fields in the order status, work, notes"]
    );
}

#[test]
fn checkpoint_rules_come_and_go() {
    let removed = after("checkpoint: { required: [worker], sections: [goal] }\n", "");
    assert_eq!(
        texts(&removed),
        ["checkpoint rules removed; nothing holds back resolved any more"]
    );
    let without =
        class(&BASE.replace("checkpoint: { required: [worker], sections: [goal] }\n", ""));
    let added = texts(&without.differences(&class(BASE)));
    assert_eq!(
        added,
        ["checkpoint rules added (required of worker, sections goal, at most 262144 bytes)"]
    );
}
