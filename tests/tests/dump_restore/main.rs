//! A dump restores everything with no special mode, in each format, and so does a base backup with its archive; the extension can
//! go and come back without the data noticing, and setting up leaves nothing when it is rolled back and changes nothing when it is
//! done again.
//!
//! Taken out, a test fails: in sql/triggers.sql any trigger of `kslate.field` (the restored copy has no gate, or the extension
//! comes back without it), in kslate-pg/src/fence.rs `self.claim_id == Some(claim_id)` (`point_in_time.rs`).

mod contents;
mod filled;
mod formats;
mod point_in_time;

use contents::{data, dump, same, schema};
use filled::{fill, works};
use kslate_tests::Cluster;

#[test]
fn the_extension_goes_and_comes_back_without_the_data_noticing() {
    let database = Cluster::shared().fresh_database();
    let before = fill(&database);
    let (schema, held) = (schema(&database), data(&database));

    database.psql("kslate", "drop extension kslate cascade");
    same(&data(&database), &held);
    let triggers = "select count(*) from pg_trigger where tgrelid::regclass::text like 'kslate.%' and not tgisinternal";
    assert_eq!(database.psql("kslate", triggers), "0");
    database.psql(
        "kslate",
        "create extension kslate schema public; select kslate_setup()",
    );

    same(&data(&database), &held);
    same(&self::schema(&database), &schema);
    works(&database, &before);
}

#[test]
fn a_schema_kslate_first_in_the_path_does_no_harm() {
    let database = Cluster::shared().fresh_database();
    let before = fill(&database);
    // The role kslate has its own name first in its search_path, and by now there is a schema of that name.
    database.psql(
        "kslate",
        "drop extension kslate cascade; create extension kslate; select kslate_setup()",
    );
    works(&database, &before);
    let schema = "select extnamespace::regnamespace from pg_extension where extname = 'kslate'";
    let schema = database.psql("kslate", schema);
    database.psql("kslate", "create role caller login in role kslate_user");
    let whoami = format!("select identity from {schema}.kslate_whoami()");
    assert_eq!(database.psql("caller", &whoami), "pg:caller");
}

#[test]
fn setting_up_again_changes_nothing() {
    let database = Cluster::shared().fresh_database();
    fill(&database);
    let before = (schema(&database), data(&database));
    let version = database.psql("kslate", "select kslate_setup()");
    assert_eq!(database.psql("kslate", "select kslate_setup()"), version);
    same(&schema(&database), &before.0);
    same(&data(&database), &before.1);
}

#[test]
fn setting_up_can_be_rolled_back() {
    // A cluster of its own: in the shared one the roles are there already.
    let cluster = Cluster::start();
    let database = cluster.empty_database();
    let all = || {
        let roles = database.psql(
            "postgres",
            "select string_agg(rolname, ' ' order by rolname) from pg_roles",
        );
        (dump(&database, ""), roles)
    };
    let before = all();
    assert!(!before.1.contains("kslate_owner"), "{}", before.1);
    let setup = "create extension kslate; select kslate_setup()";
    let seen = database.psql(
        "kslate",
        &format!("begin; {setup}; select count(*) from kslate.record; rollback"),
    );
    assert_eq!(seen, "2\n0");
    assert_eq!(all(), before);
    for leftover in [
        "pg_namespace where nspname = 'kslate'",
        "pg_extension where extname = 'kslate'",
        "pg_proc where proname like 'kslate%'",
        "pg_class where relname like '%kslate%'",
    ] {
        let count = database.psql("postgres", &format!("select count(*) from {leftover}"));
        assert_eq!(count, "0", "{leftover}");
    }
    // And for good.
    assert_eq!(database.psql("kslate", setup), "2");
}
