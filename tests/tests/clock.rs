//! `kslate.clock_offset` puts the clock of the functions forward, for tests. Nobody but a superuser may: it ends leases.
//!
//! Red without `GucContext::Suset` in kslate-pg/src/time.rs (with `Userset`), and without `.plus_seconds(…)` in `Time::now`.

use kslate_tests::crew::{claim_id, role, Crew};
use kslate_tests::{refused_in_sql, Cluster, Database, Session};

const TASK: &str = "'incidents/inc-1', 'remediation'";
/// Loads the library, if it is not loaded yet.
const CALL: &str = "select kslate_version()";

/// What a session of this role finds, in a fresh connection with these options.
fn found(database: &Database, role: &str, sql: &str) -> String {
    database.psql(role, &format!("{sql}; {CALL}; show kslate.clock_offset"))
}

fn stranger(database: &Database) {
    role(
        database,
        "clockmaker",
        "login",
        "grant kslate_user to clockmaker",
    );
}

#[tokio::test]
async fn a_superuser_lets_leases_lapse_without_waiting() {
    let crew = Crew::new().await;
    let id = crew.claim(60).await;
    // A superuser that speaks for an agent: the setting is the session's.
    let ahead = Session::login(&crew.database, "postgres").await;
    let late = "select took_over_from from kslate_claim('incidents/inc-1', 'remediation', identity => 'apikey:remediator/worker-2')";
    let clock = |seconds: u32| {
        format!("reset role; set kslate.clock_offset = {seconds}; set role kslate_server")
    };
    ahead.run(&clock(59)).await;
    let refused = ahead.sql(late).await.expect_err("a second is left");
    assert_eq!(refused.is("HELD")["retry_after_seconds"], 1);
    ahead.run(&clock(60)).await;
    assert_eq!(ahead.run(late).await, "apikey:remediator/worker-1");
    // Everybody else lives now: the lease that was granted in the future is live, the one before it is not.
    let lost = crew
        .worker
        .refused("LEASE_LOST", "renew", &format!("{TASK}, {id}"))
        .await;
    assert_eq!(lost["reason"], "taken_over");
    ahead
        .run("reset role; reset kslate.clock_offset; set role kslate_server")
        .await;
    ahead.sql(late).await.expect_err("it is live").is("HELD");
    let seconds = "select round(extract(epoch from claimed_at - clock_timestamp())) between 55 and 60 from kslate.claim";
    assert_eq!(crew.dba.run(seconds).await, "t");
    crew.consistent().await;
    assert_eq!(
        claim_id(
            &crew
                .other
                .ok("claim", &format!("{TASK}, reattach => true"))
                .await
        )
        .len(),
        38
    );
}

#[test]
fn nobody_else_can_set_it() {
    let database = Cluster::shared().fresh_database();
    stranger(&database);
    for (who, loaded) in [
        ("clockmaker", true),
        ("kslate_server", true),
        ("clockmaker", false),
    ] {
        let load = if loaded { CALL } else { "select 1" };
        for how in [
            "set kslate.clock_offset = 60",
            "set local kslate.clock_offset = 60",
            "set session kslate.clock_offset to 60",
            "select set_config('kslate.clock_offset', '60', false)",
            "select set_config('KSLATE.Clock_Offset', '60', true)",
            "update pg_settings set setting = '60' where name = 'kslate.clock_offset'",
        ] {
            if loaded {
                let refused = refused_in_sql(&database, who, &format!("{load}; {how}"));
                assert_eq!(refused.sqlstate, "42501", "{who}: {how}: {refused:?}");
            } else {
                // Before the library is loaded the name is anybody's; then the value is looked at again and dropped.
                let told = database.psql(
                    who,
                    &format!("begin; {how}; {CALL}; show kslate.clock_offset"),
                );
                assert!(told.ends_with("\n0"), "{how}: {told}");
            }
        }
    }
    for how in [
        "alter role clockmaker set kslate.clock_offset = 60",
        "alter role current_user set kslate.clock_offset = 60",
        "create function pg_temp.f() returns void language sql set kslate.clock_offset = 60 as 'select'",
        "alter system set kslate.clock_offset = 60",
        "grant set on parameter kslate.clock_offset to clockmaker",
    ] {
        for load in [CALL, "select 1"] {
            let refused = refused_in_sql(&database, "clockmaker", &format!("{load}; {how}"));
            assert_eq!(refused.sqlstate, "42501", "{how}: {refused:?}");
        }
    }
}

#[test]
fn a_connection_that_asks_for_it_does_not_get_it() {
    let database = Cluster::shared().fresh_database();
    stranger(&database);
    let url = |role: &str| {
        format!(
            "{}&options=-c%20kslate.clock_offset%3D60",
            database.url(role)
        )
    };
    let told = |role: &str| {
        let output = std::process::Command::new(kslate_tests::postgres_program("psql"))
            .args(["-XAtq", "-c", CALL, "-c", "show kslate.clock_offset"])
            .arg(url(role))
            .output()
            .expect("psql starts");
        String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_string()
    };
    assert!(
        told("clockmaker").ends_with("\n0"),
        "{}",
        told("clockmaker")
    );
    assert!(
        told("kslate_server").ends_with("\n0"),
        "{}",
        told("kslate_server")
    );
    assert!(told("postgres").ends_with("\n1min"), "{}", told("postgres"));
}

#[test]
fn the_owner_of_the_database_cannot_keep_it_there() {
    let cluster = Cluster::start();
    let database = cluster.fresh_database();
    stranger(&database);
    let name = database.name();
    database.psql(
        "postgres",
        &format!("alter database {name} owner to clockmaker"),
    );
    let keep = format!("alter database {name} set kslate.clock_offset = 60");
    for load in [CALL, "select 1"] {
        let refused = refused_in_sql(&database, "clockmaker", &format!("{load}; {keep}"));
        assert_eq!(refused.sqlstate, "42501", "{refused:?}");
    }
    assert!(found(&database, "clockmaker", "select 1").ends_with("\n0"));
    // A superuser can; then it is everybody's, and the owner cannot take it off by RESET ALL of the session.
    database.psql("postgres", &keep);
    assert!(found(&database, "clockmaker", "reset all").ends_with("\n1min"));
    database.psql(
        "postgres",
        &format!("alter database {name} reset kslate.clock_offset"),
    );
    assert!(found(&database, "clockmaker", "select 1").ends_with("\n0"));
}
