//! The doctor: each of its findings is seeded, found, and gone after the cure; before and after it finds nothing.

use kslate_tests::crew::role;
use kslate_tests::{refused_in_sql, root, Cluster, Database};
use std::collections::BTreeSet;
use std::fs;

/// Changes rows as nobody can who meets triggers: what a restored backup or a broken disk could have left.
const UNSEEN: &str = "set session_replication_role = replica;";

/// What is put wrong, what the doctor then says, and what puts it right again. `finding` is the whole of it but for `…`.
struct Ailment {
    seed: String,
    area: &'static str,
    object: String,
    finding: &'static str,
    cure: String,
}

fn ailment(
    area: &'static str,
    object: &str,
    finding: &'static str,
    seed: &str,
    cure: &str,
) -> Ailment {
    Ailment {
        seed: seed.to_string(),
        area,
        object: object.to_string(),
        finding,
        cure: cure.to_string(),
    }
}

const SETUP: &str = "select kslate_setup()";

/// Triggers of ours that are missing or do not fire, and triggers and rules that are not ours.
fn triggers() -> Vec<Ailment> {
    let mut all = Vec::new();
    for (table, names) in [
        ("field", &["a_version", "z_history", "a_keep"][..]),
        ("claim", &["a_version", "z_history", "a_keep"]),
        ("record", &["a_version", "z_history", "a_keep"]),
        ("history", &["a_keep"]),
        ("checkpoint", &["a_keep"]),
        ("class", &["a_keep", "z_changed"]),
    ] {
        for name in names {
            let object = format!("{name} on kslate.{table}");
            all.push(ailment(
                "trigger",
                &object,
                "missing: run SELECT kslate_setup()",
                &format!("drop trigger {object}"),
                SETUP,
            ));
            for how in ["disable trigger", "enable replica trigger"] {
                all.push(ailment(
                    "trigger",
                    &object,
                    "disabled: run SELECT kslate_setup()",
                    &format!("alter table kslate.{table} {how} {name}"),
                    SETUP,
                ));
            }
        }
    }
    let foreign = "create function public.mine() returns trigger language plpgsql as 'begin return null; end'; create trigger";
    let gone = "drop function public.mine() cascade";
    for (on, when) in [
        (
            "field",
            "before insert or update on kslate.field for each row",
        ),
        (
            "history",
            "after insert on kslate.history for each statement",
        ),
        ("claim", "before update on kslate.claim for each row"),
    ] {
        all.push(ailment(
            "trigger",
            &format!("zz_mine on kslate.{on}"),
            "foreign: a BEFORE trigger that returns NULL or sets versions breaks history; drop it, or make it AFTER",
            &format!("{foreign} zz_mine {when} execute function public.mine()"),
            gone,
        ));
    }
    // Ours by its name only.
    all.push(ailment(
        "trigger",
        "a_keep on kslate.history",
        "missing: run SELECT kslate_setup()",
        &format!("drop trigger a_keep on kslate.history; {foreign} a_keep before update on kslate.history for each statement execute function public.mine()"),
        &format!("{gone}; {SETUP}"),
    ));
    all.push(ailment(
        "table",
        "kslate.field",
        "rule swallow rewrites statements: drop it",
        "create rule swallow as on delete to kslate.field do instead nothing",
        "drop rule swallow on kslate.field",
    ));
    all
}

/// Tables that are not as kslate_setup() made them, and transactions that hold their rows.
fn tables() -> Vec<Ailment> {
    let owned = "owned by postgres, not by the owner of schema kslate: alter its owner";
    let hides = "row level security is on: it hides rows from kslate or its readers";
    vec![
        ailment(
            "table",
            "public.child",
            "inherits from a kslate table: its rows meet no trigger of kslate",
            "create table public.child () inherits (kslate.field)",
            "drop table public.child",
        ),
        ailment("table", "kslate.claim", owned, "alter table kslate.claim owner to postgres", "alter table kslate.claim owner to kslate_owner"),
        ailment("table", "kslate.gates", owned, "alter view kslate.gates owner to postgres", "alter view kslate.gates owner to kslate_owner"),
        ailment(
            "table",
            "kslate.lapsed",
            "missing: restore it",
            "alter view kslate.lapsed rename to gone",
            "alter view kslate.gone rename to lapsed",
        ),
        ailment(
            "table",
            "kslate.idempotency",
            "missing: restore it",
            "alter table kslate.idempotency rename to gone",
            "alter table kslate.gone rename to idempotency",
        ),
        ailment(
            "table",
            "kslate.record",
            hides,
            "alter table kslate.record enable row level security",
            "alter table kslate.record disable row level security",
        ),
        ailment(
            "prepared transaction",
            "forgotten",
            "holds rows of kslate.claim since …: commit it or roll it back",
            "begin; select from kslate_claim('incidents/inc-2', 'remediation', identity => 'apikey:remediator'); prepare transaction 'forgotten'",
            "rollback prepared 'forgotten'",
        ),
        ailment(
            "prepared transaction",
            "locked",
            "holds rows of kslate.record since …: commit it or roll it back",
            "begin; select from kslate.record where record = 'incidents/inc-2' for update; prepare transaction 'locked'",
            "rollback prepared 'locked'",
        ),
        ailment(
            "storage",
            "kslate.storage",
            "version 99, the library needs …: install the newer kslate",
            "insert into kslate.storage (version) values (99)",
            "delete from kslate.storage where version = 99",
        ),
        ailment(
            "storage",
            "kslate.storage",
            "version 1, the library needs …: run SELECT kslate_setup()",
            "delete from kslate.storage where version > 1",
            "insert into kslate.storage (version) values (2)",
        ),
        ailment(
            "table",
            "kslate.claim",
            "column 19 of kslate.claim is not reason, as this library needs it: …",
            "alter table kslate.claim rename column reason to why",
            "alter table kslate.claim rename column why to reason",
        ),
    ]
}

/// Rows that do not agree with history.
fn rows() -> Vec<Ailment> {
    let unseen = |sql: &str| format!("{UNSEEN} {sql}");
    let written = "insert into kslate.history (record, record_version, op, field, version, value, author, changed_at, login)";
    vec![
        ailment(
            "version",
            "incidents/inc-1",
            "record version 3, history has 2 changes up to version 2",
            &unseen("update kslate.record set version = 3 where record = 'incidents/inc-1'"),
            &unseen("update kslate.record set version = 2 where record = 'incidents/inc-1'"),
        ),
        // A hole: as many rows as there should be, up to another version.
        ailment(
            "version",
            "incidents/inc-1",
            "record version 2, history has 2 changes up to version 7",
            &unseen("update kslate.history set record_version = 7 where record = 'incidents/inc-1' and record_version = 2"),
            &unseen("update kslate.history set record_version = 2 where record = 'incidents/inc-1' and record_version = 7"),
        ),
        ailment(
            "version",
            "incidents/inc-1 hypotheses",
            "field version 9, history has 1",
            &unseen("update kslate.field set version = 9 where record = 'incidents/inc-1' and field = 'hypotheses'"),
            &unseen("update kslate.field set version = 1 where record = 'incidents/inc-1' and field = 'hypotheses'"),
        ),
        ailment(
            "version",
            "incidents/lost",
            "history without a record",
            &unseen(&format!("{written} values ('incidents/lost', 0, 'create', null, null, '{{}}', 'pg:x', now(), 'x')")),
            &unseen("delete from kslate.history where record = 'incidents/lost'"),
        ),
        ailment(
            "claim",
            "incidents/inc-1 remediation",
            "epoch 5, history has 1 grants",
            &unseen("update kslate.claim set epoch = 5 where record = 'incidents/inc-1'"),
            &unseen("update kslate.claim set epoch = 1 where record = 'incidents/inc-1'"),
        ),
        ailment(
            "claim",
            "incidents/inc-1 remediation",
            "recheck_at is after expires_at: claim next finds the lapsed lease late",
            &unseen("update kslate.claim set recheck_at = expires_at + interval '1 s' where record = 'incidents/inc-1'"),
            &unseen("update kslate.claim set recheck_at = expires_at where record = 'incidents/inc-1'"),
        ),
        ailment(
            "claim",
            "incidents/inc-2 remediation",
            "a task without a claim row: apply the class again",
            &unseen("delete from kslate.claim where record = 'incidents/inc-2'"),
            &unseen("insert into kslate.claim (record, field, class, queued_at) values ('incidents/inc-2', 'remediation', 'incidents', now())"),
        ),
        ailment(
            "gate",
            "incidents/inc-2",
            "resolved, but now required and without a checkpoint: remediator",
            &unseen(&format!(
                "update kslate.field set value = '\"resolved\"', version = 2, record_version = 1 where record = 'incidents/inc-2' and field = 'status';
                 update kslate.record set version = 1 where record = 'incidents/inc-2';
                 {written} values ('incidents/inc-2', 1, 'write', 'status', 2, '\"resolved\"', 'pg:x', clock_timestamp(), 'x')"
            )),
            &unseen(
                "update kslate.field set value = '\"open\"', version = 1, record_version = 0 where record = 'incidents/inc-2' and field = 'status';
                 update kslate.record set version = 0 where record = 'incidents/inc-2';
                 delete from kslate.history where record = 'incidents/inc-2' and record_version = 1",
            ),
        ),
    ]
}

/// Roles and functions with rights that they should not have.
fn rights() -> Vec<Ailment> {
    let somebody = "owns schema kslate and could be somebody (LOGIN, SUPERUSER or member of a role): its rights are those of every call";
    let can_log_in = "can log in: powerful roles are granted, not logged into";
    let mut all = vec![
        ailment(
            "role",
            "kslate_owner",
            somebody,
            "alter role kslate_owner login",
            "alter role kslate_owner nologin",
        ),
        ailment(
            "role",
            "kslate_owner",
            somebody,
            "alter role kslate_owner superuser",
            "alter role kslate_owner nosuperuser",
        ),
        ailment(
            "role",
            "kslate_owner",
            somebody,
            "grant doctors_patient to kslate_owner",
            "revoke doctors_patient from kslate_owner",
        ),
        ailment(
            "role",
            "kslate_gateway",
            can_log_in,
            "alter role kslate_gateway login",
            "alter role kslate_gateway nologin",
        ),
        ailment(
            "role",
            "kslate_admin",
            can_log_in,
            "alter role kslate_admin login",
            "alter role kslate_admin nologin",
        ),
        ailment(
            "role",
            "doctors_patient",
            "is a member of kslate_owner, the owner of schema kslate, and can do all it can",
            "grant kslate_owner to doctors_patient",
            "revoke kslate_owner from doctors_patient",
        ),
        ailment(
            "role",
            "doctors_patient",
            "may hand on kslate_gateway (ADMIN OPTION): only a DBA should make gateways and admins",
            "grant kslate_gateway to doctors_patient with admin option",
            "revoke kslate_gateway from doctors_patient",
        ),
        ailment(
            "function",
            "public.kslate_whoami(text)",
            "is SECURITY DEFINER: recreate the extension",
            "alter function kslate_whoami(text) security definer",
            "alter function kslate_whoami(text) security invoker",
        ),
        ailment(
            "function",
            "public.kslate_whoami(text)",
            "may be executed by PUBLIC: run SELECT kslate_setup()",
            "grant execute on function kslate_whoami(text) to public",
            SETUP,
        ),
    ];
    for trigger in [
        "public.kslate_field_after()",
        "public.kslate_claim_before()",
    ] {
        all.push(ailment(
            "function",
            trigger,
            "trigger function that doctors_patient may execute: revoke it",
            &format!("grant execute on function {trigger} to doctors_patient"),
            &format!("revoke execute on function {trigger} from doctors_patient"),
        ));
    }
    all
}

/// A clock that is put forward, or could be by somebody who is no superuser.
fn clocks() -> Vec<Ailment> {
    let mut all = Vec::new();
    for (whose, finding) in [
        (
            "role doctor",
            "is kept for doctor in every database: it is for tests only, ALTER … RESET it",
        ),
        (
            "role doctor",
            "puts the clock of this session forward by 1min: it is for tests only, reset it",
        ),
        (
            "role all",
            "is kept for every role in every database: it is for tests only, ALTER … RESET it",
        ),
    ] {
        all.push(ailment(
            "setting",
            "kslate.clock_offset",
            finding,
            &format!("alter {whose} set kslate.clock_offset = '1min'"),
            &format!("alter {whose} reset kslate.clock_offset"),
        ));
    }
    all.push(ailment(
        "setting",
        "kslate.clock_offset",
        "doctors_patient may put the clock forward: revoke it",
        "grant set on parameter kslate.clock_offset to doctors_patient",
        "revoke set on parameter kslate.clock_offset from doctors_patient",
    ));
    all
}

/// A cluster of the test's own, since roles belong to all of it: two records, one of them with a write and a claim.
fn ward(cluster: &Cluster) -> Database<'_> {
    cluster
        .empty_database()
        .psql("postgres", "alter system set max_prepared_transactions = 5");
    cluster.restart();
    let database = cluster.fresh_database();
    role(&database, "doctors_patient", "login", "");
    role(&database, "doctor", "login", "grant kslate_admin to doctor");
    database.psql(
        "kslate_server",
        "select from kslate_create('incidents/inc-1', identity => 'apikey:diagnoser');
         select from kslate_create('incidents/inc-2', identity => 'apikey:diagnoser');
         select from kslate_write('incidents/inc-1', 'hypotheses', '1', 0, identity => 'apikey:diagnoser');
         select from kslate_claim('incidents/inc-1', 'remediation', 3600, identity => 'apikey:remediator')",
    );
    database
}

fn findings(database: &Database) -> BTreeSet<(String, String, String)> {
    let call = "select area, object, finding from kslate_doctor()";
    let told = match database.try_psql("doctor", call) {
        Ok(told) => told,
        // An ailment that the doctor dies of is told with the others.
        Err(told) => format!("no answer|kslate_doctor()|{}", told.replace('\n', " ")),
    };
    told.lines()
        .map(|line| {
            let parts: Vec<&str> = line.split('|').collect();
            let [area, object, finding] = parts[..] else {
                panic!("three columns: {line}");
            };
            (area.to_string(), object.to_string(), finding.to_string())
        })
        .collect()
}

/// Is `text` this pattern, in which each `gap` stands for anything?
fn fits(text: &str, pattern: &str, gap: &str) -> bool {
    let mut parts = pattern.split(gap);
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let mut last = "";
    for part in parts {
        last = part;
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.is_empty() || (pattern.contains(gap) && text.ends_with(last))
}

#[test]
fn each_finding_comes_and_goes() {
    let cluster = Cluster::start();
    let database = ward(&cluster);
    let healthy = BTreeSet::new();
    assert_eq!(findings(&database), healthy, "before");
    let mut seen = BTreeSet::new();
    let mut wrong = Vec::new();
    for ailment in [triggers(), tables(), rows(), rights(), clocks()]
        .into_iter()
        .flatten()
    {
        // The kslate functions are called as the shim does; all else is a superuser's doing.
        let login = if ailment.seed.contains("identity =>") {
            "kslate_server"
        } else {
            "postgres"
        };
        database.psql(login, &ailment.seed);
        let found = findings(&database);
        let named = found.iter().any(|(area, object, finding)| {
            area == ailment.area && *object == ailment.object && fits(finding, ailment.finding, "…")
        });
        if !named {
            wrong.push(format!(
                "{} {}: {} is not among {found:?}",
                ailment.area, ailment.object, ailment.finding
            ));
        }
        seen.extend(found.into_iter().map(|(_, _, finding)| finding));
        database.psql("postgres", &ailment.cure);
        let left = findings(&database);
        if left != healthy {
            wrong.push(format!("after {}: {left:?}", ailment.cure));
            // Every ailment begins with a healthy database.
            database.psql(
                "postgres",
                "revoke execute on all functions in schema public from public",
            );
            assert_eq!(findings(&database), healthy, "{wrong:#?}");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for wanted in findings_in_source() {
        assert!(
            seen.iter().any(|finding| fits(finding, &wanted, "%s")),
            "nothing seeds the finding {wanted:?}"
        );
    }
}

/// The SQL literals of doctor.rs that are sentences; `%s` stands for what varies.
fn findings_in_source() -> Vec<String> {
    let file = root().join("kslate-pg/src/doctor.rs");
    let source = fs::read_to_string(file).expect("the doctor's source");
    let code: Vec<&str> = source
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect();
    let code = code.join("\n").replace("''", "’");
    let sentences: Vec<String> = code
        .split('\'')
        .skip(1)
        .step_by(2)
        .filter(|literal| {
            literal.matches(' ').count() >= 2 && literal.len() > 18 && !literal.contains('\n')
        })
        .map(str::to_string)
        .collect();
    assert!(sentences.len() > 15, "{sentences:?}");
    sentences
}

#[test]
fn only_an_administrator_may_call_it() {
    let database = Cluster::shared().fresh_database();
    role(
        &database,
        "doctors_user",
        "login",
        "grant kslate_user, kslate_reader to doctors_user",
    );
    role(
        &database,
        "doctors_admin",
        "login",
        "grant kslate_admin to doctors_admin",
    );
    let call = "select count(*) from kslate_doctor()";
    for stranger in ["doctors_user", "kslate_server"] {
        let refused = refused_in_sql(&database, stranger, call);
        assert_eq!(
            (refused.sqlstate.as_str(), refused.detail.as_str()),
            ("42501", ""),
            "{stranger}"
        );
    }
    for allowed in ["doctors_admin", "postgres"] {
        assert_eq!(database.psql(allowed, call), "0", "{allowed}");
    }
    let forged = "select from kslate_doctor(identity => 'apikey:diagnoser')";
    let refused = refused_in_sql(&database, "doctors_admin", forged);
    assert!(
        refused.detail.starts_with("{\"error\":\"SCOPE_DENIED\""),
        "{refused:?}"
    );
}

/// What is no ailment is no finding: a busy server with members of every role, prepared transactions and triggers elsewhere.
#[test]
fn what_is_in_order_is_not_found() {
    let cluster = Cluster::start();
    let database = ward(&cluster);
    database.psql(
        "postgres",
        "grant kslate_gateway, kslate_admin, kslate_user, kslate_reader to doctors_patient;
         create table public.other (n int);
         create table public.other_child () inherits (public.other);
         create function public.mine() returns trigger language plpgsql as 'begin return new; end';
         create trigger mine before insert on public.other for each row execute function public.mine();
         begin; insert into public.other values (1); select count(*) from kslate.record; prepare transaction 'elsewhere'",
    );
    // Resolved when it was asked for less: the gate was met as it stood then.
    database.psql(
        "postgres",
        &format!(
            "{UNSEEN} update kslate.field set value = '\"resolved\"', version = 2, record_version = 1 where record = 'incidents/inc-2' and field = 'status';
             update kslate.record set version = 1 where record = 'incidents/inc-2';
             insert into kslate.history (record, record_version, op, field, version, value, author, changed_at, login)
               values ('incidents/inc-2', 1, 'write', 'status', 2, '\"resolved\"', 'pg:x', '2020-01-01', 'x')"
        ),
    );
    assert_eq!(findings(&database), BTreeSet::new());
    database.psql("postgres", "rollback prepared 'elsewhere'");
}
