//! What a database role may do with the functions, and that nobody borrows an identity.

use kslate_tests::crew::{role, Crew};
use kslate_tests::{Database, Session};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A call of each function that takes an identity: accepted in this order when the identity is the diagnoser's (renew, release,
/// complete, reopen, force_release are denied to it by class, which is a later check). A new function needs a line here.
const CALLS: &[(&str, &str)] = &[
    ("create", "'incidents/r-1'"),
    ("write", "'incidents/inc-1', 'hypotheses', '1', 0"),
    (
        "write_many",
        r#"'incidents/inc-1', '[{"field":"hypotheses","value":2,"expected_version":1}]'"#,
    ),
    ("append", "'incidents/inc-1', 'actions_taken', '1'"),
    ("claim", "'incidents/inc-1', 'remediation'"),
    ("claim_next", "'incidents', 'remediation'"),
    (
        "renew",
        "'incidents/inc-1', 'remediation', '00000000-0000-4000-8000-000000000000'",
    ),
    (
        "release",
        "'incidents/inc-1', 'remediation', '00000000-0000-4000-8000-000000000000'",
    ),
    (
        "complete",
        "'incidents/inc-1', 'remediation', '00000000-0000-4000-8000-000000000000'",
    ),
    ("reopen", "'incidents/inc-1', 'remediation'"),
    (
        "force_release",
        "'incidents/inc-1', 'remediation', 1, 'reason'",
    ),
    ("checkpoint_save", "'incidents/inc-1', '{}'"),
    ("checkpoint_load", "'incidents/inc-1'"),
    ("checkpoint_list", "'incidents/inc-1'"),
    ("get", "'incidents/inc-1'"),
    ("fields", "'incidents/inc-1'"),
    ("field_at", "'incidents/inc-1', 'status', 1"),
    ("entries", "'incidents/inc-1', 'actions_taken'"),
    ("list", "'incidents'"),
    ("history", "'incidents/inc-1'"),
    ("blame", "'incidents/inc-1'"),
    ("class", "'incidents'"),
    ("class_list", ""),
    (
        "class_apply",
        "E'class: x\\nroles: { a: [apikey:a] }\\nfields: { note: { mode: lww, write: [a] } }'",
    ),
    ("whoami", ""),
    ("doctor", ""),
];

/// A login role; `grants` name it `{role}`.
async fn login(database: &Database<'_>, name: &str, grants: &str) -> Arc<Session> {
    role(database, name, "login", &grants.replace("{role}", name));
    Session::login(database, name).await
}

/// `kslate_<function>(<arguments>, identity => …)`.
fn as_identity(function: &str, arguments: &str, identity: &str) -> String {
    let comma = if arguments.is_empty() { "" } else { ", " };
    format!("select * from kslate_{function}({arguments}{comma}identity => {identity})")
}

#[tokio::test]
async fn scenario_12_an_ungranted_role_may_call_nothing() {
    let crew = Crew::new().await;
    let nobody = login(&crew.database, "rights_nobody", "").await;
    let functions = crew
        .dba
        .run(
            "select p.oid::regprocedure, format('select %I.%I(%s)', n.nspname, p.proname,
                 (select string_agg(format('null::%s', format_type(t.type, null)), ', ' order by t.place)
                  from unnest(p.proargtypes::oid[]) with ordinality t (type, place)))
             from pg_depend d join pg_extension e on e.oid = d.refobjid and e.extname = 'kslate'
             join pg_proc p on p.oid = d.objid and d.classid = 'pg_proc'::regclass
             join pg_namespace n on n.oid = p.pronamespace where d.deptype = 'e'",
        )
        .await;
    assert!(functions.lines().count() > 30, "{functions}");
    for line in functions.lines() {
        let (name, call) = line.split_once('|').expect("two columns");
        let refused = nobody.sql(call).await.expect_err(call);
        assert_eq!(refused.sqlstate, "42501", "{name}: {refused:?}");
        assert!(
            refused
                .message
                .starts_with("permission denied for function"),
            "{name}: {refused:?}"
        );
    }
    // The control: the same calls of a role that has been granted get to our own checks.
    let user = login(&crew.database, "rights_user", "grant kslate_user to {role}").await;
    let may: Vec<&str> = functions
        .lines()
        .filter(|line| !line.contains("_before(") && !line.contains("_after("))
        .filter(|line| {
            ![
                "kslate_keep",
                "kslate_class_changed",
                "kslate_setup",
                "kslate_class_apply",
                "kslate_doctor",
                "kslate_forget_keys",
            ]
            .iter()
            .any(|name| line.starts_with(name))
        })
        .collect();
    for line in may {
        let (name, call) = line.split_once('|').expect("two columns");
        if let Err(refused) = user.sql(call).await {
            assert_eq!(refused.error(), "MALFORMED", "{name}: {refused:?}");
        }
    }
}

#[tokio::test]
async fn every_function_that_takes_an_identity_is_in_the_list() {
    let crew = Crew::new().await;
    let named: BTreeSet<String> = CALLS
        .iter()
        .map(|(name, _)| format!("kslate_{name}"))
        .collect();
    let there: BTreeSet<String> = crew
        .dba
        .run("select proname from pg_proc where 'identity' = any (proargnames) and proname like 'kslate\\_%'")
        .await
        .lines()
        .map(str::to_string)
        .collect();
    assert_eq!(named, there);
}

#[tokio::test]
async fn scenario_12_a_forged_identity_is_denied_to_all_but_the_gateway() {
    let crew = Crew::new().await;
    role(&crew.database, "rights_super", "login superuser", "");
    let superuser = Session::login(&crew.database, "rights_super").await;
    let user = login(
        &crew.database,
        "rights_forger",
        "grant kslate_user, kslate_admin to {role}",
    )
    .await;
    let before = crew.version().await;
    for session in [&superuser, &user] {
        for (function, arguments) in CALLS {
            for identity in ["'apikey:diagnoser'", "'pg:postgres'", "''"] {
                let sql = as_identity(function, arguments, identity);
                let refused = session.sql(&sql).await.expect_err(&sql);
                refused.is("SCOPE_DENIED");
                assert!(refused.message.contains("kslate_gateway"), "{refused:?}");
            }
        }
    }
    assert_eq!(crew.version().await, before);
    // The control: a gateway's call with the same identity is judged as that identity.
    let gateway = login(
        &crew.database,
        "rights_gateway",
        "grant kslate_gateway to {role}",
    )
    .await;
    for (function, arguments) in CALLS {
        let sql = as_identity(function, arguments, "'apikey:diagnoser'");
        if let Err(refused) = gateway.sql(&sql).await {
            assert!(
                !refused.message.contains("kslate_gateway"),
                "{sql}: {refused:?}"
            );
        }
    }
    assert_eq!(
        crew.history("author, login", 1).await,
        "apikey:diagnoser|rights_gateway"
    );
    crew.consistent().await;
}

#[tokio::test]
async fn a_gateway_speaks_for_api_keys_only() {
    let crew = Crew::new().await;
    let gateway = login(
        &crew.database,
        "rights_speaker",
        "grant kslate_gateway to {role}",
    )
    .await;
    for identity in [
        "''",
        "'apikey:'",
        "'pg:postgres'",
        "'pg:diagnoser'",
        "'diagnoser'",
        "'APIKEY:diagnoser'",
        "' apikey:diagnoser'",
        "'apikey:a b'",
        "E'apikey:a\\nb'",
        "'apikey:' || repeat('x', 250)",
    ] {
        for (function, arguments) in [("whoami", ""), CALLS[1]] {
            gateway
                .sql(&as_identity(function, arguments, identity))
                .await
                .expect_err(identity)
                .is("SCOPE_DENIED");
        }
    }
    // Without an identity the gateway is its own database role, which holds nothing.
    assert_eq!(
        gateway.ok("whoami", "identity => null").await["identity"],
        "pg:rights_speaker"
    );
    gateway.refused("SCOPE_DENIED", "write", CALLS[1].1).await;
    crew.consistent().await;
}

#[tokio::test]
async fn membership_is_by_grant_direct_or_not_and_by_set_role() {
    let crew = Crew::new().await;
    let far = login(
        &crew.database,
        "rights_far",
        "do $$ begin if to_regrole('rights_middle') is null then create role rights_middle; end if; end $$;
         grant kslate_gateway to rights_middle; grant rights_middle to {role}",
    )
    .await;
    let who = "identity => 'apikey:diagnoser'";
    assert_eq!(far.ok("whoami", who).await["identity"], "apikey:diagnoser");
    // A superuser is nobody's gateway, and becomes one's by SET ROLE: the outermost user is judged.
    crew.dba.refused("SCOPE_DENIED", "whoami", who).await;
    crew.dba.run("set role kslate_server").await;
    assert_eq!(
        crew.dba.ok("whoami", who).await["identity"],
        "apikey:diagnoser"
    );
    crew.dba
        .ok("write", &format!("{}, {who}", CALLS[1].1))
        .await;
    crew.dba.run("reset role").await;
    assert_eq!(
        crew.history("author, login", 1).await,
        "apikey:diagnoser|postgres"
    );
    // The other way round: SET ROLE away from the gateway.
    role(
        &crew.database,
        "rights_plain",
        "nologin",
        "grant kslate_user to rights_plain",
    );
    let both = login(
        &crew.database,
        "rights_both",
        "grant kslate_gateway, rights_plain to {role}",
    )
    .await;
    both.run("set role rights_plain").await;
    both.refused("SCOPE_DENIED", "whoami", who).await;
    assert_eq!(both.ok("whoami", "").await["identity"], "pg:rights_plain");
    crew.consistent().await;
}

#[tokio::test]
async fn no_setting_carries_an_identity() {
    let crew = Crew::new().await;
    login(&crew.database, "rights_guc", "grant kslate_user to {role}").await;
    let names = [
        "identity",
        "role",
        "user",
        "kslate.identity",
        "kslate.caller",
        "kslate.gateway",
        "request.jwt.claims",
    ];
    let mut options = String::new();
    for name in names.iter().filter(|name| name.contains('.')) {
        options += &format!("-c%20{name}%3Dapikey:diagnoser%20");
    }
    let url = format!("{}&options={options}", crew.database.url("rights_guc"));
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls)
        .await
        .expect("custom settings may be given at the start");
    tokio::spawn(connection);
    for name in names.iter().filter(|name| name.contains('.')) {
        client
            .simple_query(&format!("set {name} = 'apikey:diagnoser'; select set_config('{name}', 'apikey:diagnoser', false)"))
            .await
            .expect("anybody may set a custom setting");
    }
    let identity: String = client
        .query_one("select identity from kslate_whoami()", &[])
        .await
        .expect("whoami")
        .get(0);
    assert_eq!(identity, "pg:rights_guc");
    let error = client
        .simple_query("select from kslate_write('incidents/inc-1', 'hypotheses', '1', 0)")
        .await
        .expect_err("pg:rights_guc holds no role");
    assert_eq!(error.code().map(|code| code.code()), Some("42501"));
    crew.consistent().await;
}

#[tokio::test]
async fn set_role_and_session_authorization_are_told_apart_in_history() {
    let crew = Crew::new().await;
    for name in ["diagnoser", "remediator"] {
        role(
            &crew.database,
            name,
            "login",
            &format!("grant kslate_user to {name}"),
        );
    }
    let person = login(&crew.database, "rights_person", "grant diagnoser to {role}").await;
    person.run("set role diagnoser").await;
    person
        .ok("write", "'incidents/inc-1', 'hypotheses', '1', 0")
        .await;
    assert_eq!(
        crew.history("author, role, login", 1).await,
        "pg:diagnoser|diagnoser|rights_person"
    );
    person.run("reset role").await;
    person
        .refused(
            "SCOPE_DENIED",
            "write",
            "'incidents/inc-1', 'hypotheses', '1', 1",
        )
        .await;
    person
        .sql("set role remediator")
        .await
        .expect_err("it is no member");
    crew.consistent().await;
}

#[tokio::test]
async fn a_definer_function_lends_nobody_its_owners_identity() {
    let crew = Crew::new().await;
    role(
        &crew.database,
        "diagnoser",
        "login",
        "grant kslate_user to diagnoser",
    );
    let mallory = login(&crew.database, "rights_mallory", "").await;
    let write =
        "select version from public.kslate_write('incidents/inc-1', 'hypotheses', '\"forged\"', 0";
    for (name, owner, more) in [
        ("lent_by_role", "diagnoser", ""),
        (
            "lent_by_gateway",
            "kslate_server",
            ", identity => 'apikey:diagnoser'",
        ),
        (
            "lent_by_super",
            "postgres",
            ", identity => 'apikey:diagnoser'",
        ),
    ] {
        crew.dba
            .run(&format!(
                "create function public.{name}() returns bigint language sql security definer as $$ {write}{more}) $$;
                 alter function public.{name}() owner to {owner}; grant execute on function public.{name}() to rights_mallory"
            ))
            .await;
        mallory
            .sql(&format!("select public.{name}()"))
            .await
            .expect_err(name)
            .is("SCOPE_DENIED");
    }
    // The control: called by the role that it belongs to, it works.
    let diagnoser = Session::login(&crew.database, "diagnoser").await;
    crew.dba
        .run("grant execute on function public.lent_by_role() to diagnoser")
        .await;
    assert_eq!(diagnoser.run("select public.lent_by_role()").await, "1");
    assert_eq!(crew.history("author", 1).await, "pg:diagnoser");
    crew.consistent().await;
}

#[tokio::test]
async fn an_index_function_is_not_judged_as_who_analyzes() {
    let crew = Crew::new().await;
    // The superuser holds a role of its own here, which the trap is after.
    crew.dba
        .ok(
            "class_apply",
            "$yaml$class: hosts\nroles: { boss: [pg:postgres] }\nfields:\n  note: { mode: lww, write: [boss] }\n$yaml$",
        )
        .await;
    crew.dba.ok("create", "'hosts/a'").await;
    let mallory = login(
        &crew.database,
        "rights_trapper",
        "grant kslate_user to {role}; grant create on schema public to {role}",
    )
    .await;
    for (n, call) in [
        "perform from public.kslate_write('hosts/a', 'note', '\"forged\"')",
        "perform from public.kslate_create('hosts/forged')",
        "perform from public.kslate_get('hosts/a')",
        "perform from public.kslate_whoami()",
    ]
    .iter()
    .enumerate()
    {
        mallory
            .run(&format!(
                "create table public.bait_{n} (x text);
                 create function public.trap_{n}(x text) returns text language plpgsql immutable as $$
                   begin if session_user <> 'rights_trapper' then {call}; end if; return x; end $$;
                 create index on public.bait_{n} (public.trap_{n}(x));
                 insert into public.bait_{n} values ('a')"
            ))
            .await;
        for maintenance in ["analyze", "reindex table", "vacuum analyze"] {
            let sql = format!("{maintenance} public.bait_{n}");
            let refused = crew.dba.sql(&sql).await.expect_err(&sql);
            refused.is("SCOPE_DENIED");
            assert!(
                refused.message.contains("security-restricted"),
                "{refused:?}"
            );
        }
    }
    // The control: the superuser itself may.
    crew.dba.ok("write", "'hosts/a', 'note', '\"mine\"'").await;
    assert_eq!(
        crew.dba
            .run("select record, version from kslate.record where class = 'hosts'")
            .await,
        "hosts/a|1"
    );
    crew.consistent().await;
}

#[tokio::test]
async fn scenario_8_after_an_error_the_next_caller_on_the_connection_is_itself() {
    let crew = Crew::new().await;
    let gateway = Session::login(&crew.database, "kslate_server").await;
    let write = |version: u32, identity: &str| {
        format!("'incidents/inc-1', 'hypotheses', '{version}', {version}, identity => 'apikey:{identity}'")
    };
    gateway.run("begin").await;
    gateway.ok("write", &write(0, "diagnoser")).await;
    gateway
        .refused("SCOPE_DENIED", "write", &write(1, "remediator/worker-1"))
        .await;
    gateway.run("rollback").await;
    for (version, identity) in [(0, "diagnoser/a"), (1, "diagnoser/b")] {
        gateway
            .refused("VERSION_CONFLICT", "write", &write(9, "diagnoser"))
            .await;
        gateway.ok("write", &write(version, identity)).await;
        assert_eq!(
            crew.history("author, login", 1).await,
            format!("apikey:{identity}|kslate_server")
        );
    }
    // Rights, search_path and lock_timeout are the caller's own again after each error, caught ones too.
    gateway
        .run("do $$ begin perform from kslate_get('incidents/none', identity => 'apikey:diagnoser'); exception when no_data_found then null; end $$")
        .await;
    assert_eq!(
        gateway
            .run("select current_user, current_setting('search_path'), current_setting('lock_timeout')")
            .await,
        "kslate_server|\"$user\", public|0"
    );
    gateway
        .sql("select from kslate.record")
        .await
        .expect_err("the owner's rights are given back");
    crew.consistent().await;
}
