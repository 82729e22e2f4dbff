//! Tables, triggers and names: nothing of somebody else's stands in for ours, and the tables are closed.

use kslate_tests::crew::{role, Crew};
use kslate_tests::Session;

const TABLES: [&str; 8] = [
    "storage",
    "class",
    "record",
    "field",
    "claim",
    "checkpoint",
    "history",
    "idempotency",
];

#[tokio::test]
async fn a_reader_reads_every_table_and_view_and_writes_none() {
    let crew = Crew::new().await;
    role(
        &crew.database,
        "tables_reader",
        "login",
        "grant kslate_reader to tables_reader",
    );
    let reader = Session::login(&crew.database, "tables_reader").await;
    let relations = crew
        .dba
        .run("select relname from pg_class where relnamespace = 'kslate'::regnamespace and relkind in ('r', 'v', 'm', 'p')")
        .await;
    assert!(relations.lines().count() > TABLES.len(), "tables and views");
    for relation in relations.lines() {
        reader
            .run(&format!("select count(*) from kslate.{relation}"))
            .await;
        for sql in [
            format!("delete from kslate.{relation}"),
            format!("truncate kslate.{relation}"),
            format!("do $$ begin lock table kslate.{relation} in share mode; end $$"),
            format!("create trigger t before insert on kslate.{relation} execute function suppress_redundant_updates_trigger()"),
            format!("drop table kslate.{relation}"),
        ] {
            let refused = reader.sql(&sql).await.expect_err(&sql);
            assert!(["42501", "42809", "55000"].contains(&refused.sqlstate.as_str()), "{sql}: {refused:?}");
        }
    }
    for sql in [
        "update kslate.field set value = '1'",
        "insert into kslate.field (record, field) values ('incidents/inc-1', 'hypotheses')",
        "insert into kslate.record (record) values ('incidents/x')",
        "create table kslate.mine ()",
        "select from kslate_get('incidents/inc-1')",
        "select from kslate_create('incidents/x')",
    ] {
        let refused = reader.sql(sql).await.expect_err(sql);
        assert_eq!(
            (refused.sqlstate.as_str(), refused.error().as_str()),
            ("42501", ""),
            "{sql}"
        );
    }
    crew.consistent().await;
}

#[tokio::test]
async fn users_admins_and_the_public_touch_no_table() {
    let crew = Crew::new().await;
    role(&crew.database, "tables_public", "login", "");
    role(
        &crew.database,
        "tables_user",
        "login",
        "grant kslate_user, kslate_admin to tables_user",
    );
    for name in ["tables_public", "tables_user", "kslate_server"] {
        let session = Session::login(&crew.database, name).await;
        for table in TABLES {
            for sql in [
                format!("select from kslate.{table}"),
                format!("delete from kslate.{table}"),
                format!("truncate kslate.{table}"),
            ] {
                // The gateway asks for the storage's version, and counts live leases for its metrics.
                if name == "kslate_server"
                    && matches!(table, "storage" | "claim")
                    && sql.starts_with("select")
                {
                    session.run(&sql).await;
                    continue;
                }
                let refused = session.sql(&sql).await.expect_err(&sql);
                assert_eq!(refused.sqlstate, "42501", "{name}: {sql}: {refused:?}");
            }
        }
    }
    // The control: what they are for.
    let user = Session::login(&crew.database, "tables_user").await;
    user.ok(
        "class_apply",
        "$$class: t\nroles: { a: [pg:tables_user] }\nfields: { note: { mode: lww, write: [a] } }\n$$",
    )
    .await;
    user.ok("create", "'t/x'").await;
    user.ok("write", "'t/x', 'note', '1'").await;
    crew.consistent().await;
}

/// Operators, functions and tables named like ours in a schema that comes first; each writes to evil.log if it is ever called.
const EVIL: &str = r#"
create schema evil;
create table evil.log (what text);
grant usage on schema evil to public; grant insert, select on evil.log to public;
create function evil.note(what text) returns void language plpgsql as $$ begin insert into evil.log values (what); end $$;
create function evil.text_eq(text, text) returns boolean language plpgsql as $$ begin perform evil.note('text ='); return true; end $$;
create function evil.int_eq(bigint, bigint) returns boolean language plpgsql as $$ begin perform evil.note('bigint ='); return true; end $$;
create function evil.int_gt(bigint, bigint) returns boolean language plpgsql as $$ begin perform evil.note('bigint >'); return true; end $$;
create function evil.add(bigint, integer) returns bigint language plpgsql as $$ begin perform evil.note('+'); return 77; end $$;
create function evil.cat(text, text) returns text language plpgsql as $$ begin perform evil.note('||'); return 'x'; end $$;
create function evil.name_eq(name, name) returns boolean language plpgsql as $$ begin perform evil.note('name ='); return true; end $$;
create function evil.oid_eq(oid, oid) returns boolean language plpgsql as $$ begin perform evil.note('oid ='); return true; end $$;
create operator evil.= (leftarg = text, rightarg = text, function = evil.text_eq);
create operator evil.= (leftarg = bigint, rightarg = bigint, function = evil.int_eq);
create operator evil.= (leftarg = name, rightarg = name, function = evil.name_eq);
create operator evil.= (leftarg = oid, rightarg = oid, function = evil.oid_eq);
create operator evil.> (leftarg = bigint, rightarg = bigint, function = evil.int_gt);
create operator evil.+ (leftarg = bigint, rightarg = integer, function = evil.add);
create operator evil.|| (leftarg = text, rightarg = text, function = evil.cat);
create function evil.unnest(text[]) returns setof text language plpgsql as $$ begin perform evil.note('unnest'); return; end $$;
create function evil.jsonb_each(jsonb, out key text, out value jsonb) returns setof record language plpgsql as $$ begin perform evil.note('jsonb_each'); return; end $$;
create function evil.octet_length(text) returns integer language plpgsql as $$ begin perform evil.note('octet_length'); return 1; end $$;
create function evil.clock_timestamp() returns timestamptz language plpgsql as $$ begin perform evil.note('clock'); return 'infinity'; end $$;
create function evil.max(bigint) returns bigint language plpgsql as $$ begin perform evil.note('max'); return 1; end $$;
create function evil.format(text, text) returns text language plpgsql as $$ begin perform evil.note('format'); return 'select 1'; end $$;
create function evil.format(text, variadic "any") returns text language internal immutable as 'text_format';
create table evil.record (like kslate.record); create table evil.field (like kslate.field); create table evil.claim (like kslate.claim);
create table evil.class (like kslate.class); create table evil.history (like kslate.history); create table evil.storage (version int);
grant all on all tables in schema evil to public;
"#;

const TEMPORARY: &str = "
create temp table record (like evil.record); create temp table field (like evil.field); create temp table claim (like evil.claim);
create temp table class (like evil.class); create temp table history (like evil.history); create temp table storage (version int);
insert into class values ('incidents', 9, 'class: incidents', '{}', 'x', now());
set search_path = evil, pg_temp, public, pg_catalog;";

#[tokio::test]
async fn no_schema_in_front_and_no_temporary_table_stands_in_for_ours() {
    let crew = Crew::new().await;
    crew.dba.run(EVIL).await;
    for name in ["diagnoser", "remediator"] {
        role(
            &crew.database,
            name,
            "login",
            &format!("grant kslate_user to {name}"),
        );
    }
    let diagnoser = Session::login(&crew.database, "diagnoser").await;
    let remediator = Session::login(&crew.database, "remediator").await;
    for session in [&diagnoser, &remediator, &crew.dba] {
        session.run(TEMPORARY).await;
    }
    diagnoser
        .ok("create", "'incidents/evil', '{\"hypotheses\": 1}'")
        .await;
    diagnoser
        .ok(
            "write",
            "'incidents/evil', 'hypotheses', '2', 1, idempotency_key => 'k'",
        )
        .await;
    diagnoser
        .ok(
            "write_many",
            r#"'incidents/evil', '[{"field":"hypotheses","value":3,"expected_version":2}]'"#,
        )
        .await;
    let claimed = remediator
        .ok("claim", "'incidents/evil', 'remediation'")
        .await;
    remediator
        .refused("HELD", "claim", "'incidents/evil', 'remediation'")
        .await;
    let id = claimed["claim_id"]
        .as_str()
        .expect("a claim_id")
        .to_string();
    remediator
        .ok("renew", &format!("'incidents/evil', 'remediation', '{id}'"))
        .await;
    remediator
        .ok("append", "'incidents/evil', 'actions_taken', '1'")
        .await;
    remediator
        .ok(
            "complete",
            &format!("'incidents/evil', 'remediation', '{id}'"),
        )
        .await;
    diagnoser
        .refused(
            "INVALID_CHECKPOINT",
            "write",
            r#"'incidents/evil', 'status', '"resolved"', 1"#,
        )
        .await;
    for (function, arguments) in [
        ("fields", "'incidents/evil'"),
        ("entries", "'incidents/evil', 'actions_taken'"),
        ("list", "'incidents', '{\"status\": \"open\"}'"),
        ("history", "'incidents/evil'"),
        ("blame", "'incidents/evil'"),
        ("checkpoint_list", "'incidents/evil'"),
    ] {
        remediator
            .rows(function, arguments)
            .await
            .unwrap_or_else(|refused| panic!("{function}: {refused:?}"));
    }
    // A superuser's hand, and its kslate_setup(), go by the same names.
    crew.dba
        .run("update kslate.field set value = '4' where record operator(pg_catalog.=) 'incidents/evil' and field operator(pg_catalog.=) 'hypotheses'")
        .await;
    crew.dba
        .run("update kslate.claim set state = 'open' where record operator(pg_catalog.=) 'incidents/evil'")
        .await;
    crew.dba
        .run("insert into kslate.record (record) values ('incidents/by-hand')")
        .await;
    crew.dba.run("select public.kslate_setup()").await;
    crew.dba.run("select * from public.kslate_doctor()").await;
    assert_eq!(crew.dba.run("select what from evil.log").await, "");
    for table in ["record", "field", "claim", "history"] {
        assert_eq!(
            crew.dba
                .run(&format!("select count(*) from pg_temp.{table}"))
                .await,
            "0"
        );
        assert_eq!(
            crew.dba
                .run(&format!("select count(*) from evil.{table}"))
                .await,
            "0"
        );
    }
    crew.consistent().await;
    // The control: the traps do work.
    crew.dba.run("select 'a'::text = 'b'::text").await;
    assert_eq!(crew.dba.run("select what from evil.log").await, "text =");
}

const TRIGGER_FUNCTIONS: [(&str, &str); 10] = [
    (
        "kslate_field_before",
        "before insert or update on {t} for each row",
    ),
    (
        "kslate_field_after",
        "after insert or update on {t} for each row",
    ),
    (
        "kslate_claim_before",
        "before insert or update on {t} for each row",
    ),
    (
        "kslate_claim_after",
        "after insert or update on {t} for each row",
    ),
    (
        "kslate_record_before",
        "before insert or update on {t} for each row",
    ),
    (
        "kslate_record_after",
        "after insert or update on {t} for each row",
    ),
    (
        "kslate_keep",
        "before insert or update on {t} for each statement",
    ),
    (
        "kslate_class_changed",
        "after insert or update on {t} for each statement",
    ),
    (
        "kslate_field_before",
        "before insert on {t} for each statement",
    ),
    (
        "kslate_field_after",
        "after insert on {t} for each statement",
    ),
];

#[tokio::test]
async fn trigger_functions_are_for_our_tables_only() {
    let crew = Crew::new().await;
    role(
        &crew.database,
        "tables_maker",
        "login",
        "grant kslate_user, kslate_admin, kslate_gateway to tables_maker",
    );
    crew.dba
        .run("grant create on schema public to tables_maker")
        .await;
    let maker = Session::login(&crew.database, "tables_maker").await;
    let history = "select count(*) from kslate.history";
    let before = crew.dba.run(history).await;
    for (n, (function, when)) in TRIGGER_FUNCTIONS.iter().enumerate() {
        // On a table of one's own, with the columns and the name of ours.
        let table = format!("mine_{n}");
        maker
            .run(&format!(
                "create table public.{table} (record text collate \"C\", field text collate \"C\", value jsonb, version bigint,
                   author text, role text, evidence text, record_version bigint, changed_at timestamptz)"
            ))
            .await;
        let create = format!(
            "create trigger t {} execute function public.{function}()",
            when.replace("{t}", &format!("public.{table}"))
        );
        let refused = maker.sql(&create).await.expect_err(&create);
        assert_eq!(
            (refused.sqlstate.as_str(), refused.error().as_str()),
            ("42501", ""),
            "{create}: {refused:?}"
        );
        // A superuser can hang it there; it refuses to work.
        crew.dba.run(&create).await;
        let insert = format!(
            "insert into public.{table} values ('incidents/inc-1', 'hypotheses', '1', 1, 'apikey:x', null, null, 1, now())"
        );
        for session in [&maker, &crew.dba] {
            session
                .sql(&insert)
                .await
                .expect_err(&insert)
                .is("SCOPE_DENIED");
        }
        // Called as a function it says so, and the backend lives.
        let call = format!("select public.{function}()");
        let refused = crew.dba.sql(&call).await.expect_err(&call);
        assert!(
            ["42501", "0A000", "39P01"].contains(&refused.sqlstate.as_str()),
            "{refused:?}"
        );
    }
    assert_eq!(crew.dba.run(history).await, before);
    // On our own tables in the wrong place it refuses too, and takes no backend down.
    for (function, when) in [
        (
            "kslate_claim_before",
            "before insert or update on kslate.field for each row",
        ),
        (
            "kslate_record_after",
            "after insert or update on kslate.field for each row",
        ),
        (
            "kslate_field_before",
            "before insert or update on kslate.claim for each row",
        ),
        (
            "kslate_field_after",
            "after update on kslate.field for each statement",
        ),
        (
            "kslate_class_changed",
            "after update on kslate.field for each statement",
        ),
    ] {
        crew.dba
            .run(&format!(
                "begin; create trigger t {when} execute function public.{function}()"
            ))
            .await;
        let table = if when.contains("kslate.claim") {
            "claim set owner = 'apikey:x', state = 'claimed'"
        } else {
            "field set value = '\"mitigating\"'"
        };
        let refused = crew
            .dba
            .sql(&format!("update kslate.{table}"))
            .await
            .expect_err(when);
        assert_eq!(refused.sqlstate, "42501", "{when}: {refused:?}");
        crew.dba.run("rollback").await;
    }
    crew.consistent().await;
}
