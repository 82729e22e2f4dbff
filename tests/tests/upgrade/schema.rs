//! An upgraded database has what a fresh one has, and no more, whatever way it took.

use crate::released::{self, SETUP, UPDATE};
use kslate_tests::{Cluster, Database};
use std::collections::BTreeSet;

/// A line for each thing that the catalogs know of the extension and of schema kslate: what it is called and all about it.
const CATALOGS: &str = r#"
with ours as (
    select d.objid as oid from pg_depend d join pg_extension e on e.oid = d.refobjid and e.extname = 'kslate'
    where d.deptype = 'e' and d.classid = 'pg_proc'::regclass and d.refclassid = 'pg_extension'::regclass),
  rel as (select * from pg_class where relnamespace = 'kslate'::regnamespace and relkind <> 't'),
  acl as (select * from (
      select 'function' as kind, p.oid::regprocedure::text as name, p.proacl as acl from pg_proc p join ours using (oid)
      union all select 'relation', relname, relacl from rel
      union all select 'column', rel.relname || '.' || attname, attacl from pg_attribute join rel on rel.oid = attrelid where attnum > 0
      union all select 'schema', nspname, nspacl from pg_namespace where nspname = 'kslate') a)
select line from (
  select format('extension %s %s', extversion, to_jsonb(e) - '{oid,extversion}'::text[]) as line from pg_extension e where extname = 'kslate'
  union all select format('member %s', pg_describe_object(d.classid, d.objid, d.objsubid)) from pg_depend d
    join pg_extension e on e.oid = d.refobjid and e.extname = 'kslate' where d.deptype = 'e' and d.refclassid = 'pg_extension'::regclass
  union all select format('function %s %s %s', p.oid::regprocedure, pg_get_functiondef(p.oid),
      to_jsonb(p) - '{oid,proacl,proargdefaults}'::text[]) from pg_proc p join ours using (oid)
  union all select format('grant %s %s: %s', kind, name, x) from acl, unnest(acl) x
  union all select format('no acl %s %s', kind, name) from acl where acl is null and kind <> 'column'
  union all select format('schema %s', nspowner::regrole) from pg_namespace where nspname = 'kslate'
  union all select format('relation %s %s %s %s %s %s %s %s %s %s', relname, relkind, relowner::regrole, reloptions, relpersistence,
      relreplident, relrowsecurity, relforcerowsecurity, relispartition, reltablespace) from rel
  union all select format('column %s %s %s', rel.relname, attname, concat_ws(' ', 'at ' || attnum, format_type(atttypid, atttypmod),
      attcollation::regcollation, attnotnull, attidentity, attgenerated, attstorage, attcompression, attisdropped, attislocal,
      pg_get_expr(d.adbin, d.adrelid))) from pg_attribute a join rel on rel.oid = attrelid
      left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum where a.attnum > 0
  union all select format('index %s %s %s', pg_get_indexdef(indexrelid), indisvalid, indisprimary) from pg_index
      where indrelid in (select oid from rel)
  union all select format('constraint %s %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) from pg_constraint
      where connamespace = 'kslate'::regnamespace
  union all select format('trigger %s %s', pg_get_triggerdef(oid), tgenabled) from pg_trigger where tgrelid in (select oid from rel)
  union all select format('view %s %s', relname, pg_get_viewdef(oid)) from rel where relkind = 'v'
  union all select format('rule %s', pg_get_ruledef(oid)) from pg_rewrite where ev_class in (select oid from rel)
  union all select format('policy %s', polname) from pg_policy where polrelid in (select oid from rel)
  union all select format('statistics %s', stxname) from pg_statistic_ext where stxrelid in (select oid from rel)
  union all select format('comment %s: %s', pg_describe_object(classoid, objoid, objsubid), description) from pg_description
      where (classoid = 'pg_class'::regclass and objoid in (select oid from rel))
        or (classoid = 'pg_proc'::regclass and objoid in (select oid from ours))
  union all select format('type %s', typname) from pg_type where typnamespace = 'kslate'::regnamespace and typtype not in ('c', 'b')
  union all select format('storage %s', version) from kslate.storage) all_of_it
order by line collate "C"
"#;

fn catalogs(database: &Database) -> String {
    let lines = database.psql("postgres", CATALOGS);
    assert!(lines.lines().count() > 300, "{lines}");
    lines
}

/// The lines that one has and the other has not.
fn difference(now: &str, want: &str) -> Vec<String> {
    let of = |text: &str| -> BTreeSet<String> { text.lines().map(str::to_string).collect() };
    let (now, want) = (of(now), of(want));
    let more = now.difference(&want).map(|line| format!("+ {line}"));
    more.chain(want.difference(&now).map(|line| format!("- {line}")))
        .collect()
}

#[test]
fn scenario_a_an_upgraded_schema_equals_a_fresh_one() {
    let cluster = Cluster::shared();
    let fresh = cluster.empty_database();
    fresh.psql("kslate", "create extension kslate schema public");
    fresh.psql("kslate", SETUP);
    let want = catalogs(&fresh);
    for version in released::all() {
        for steps in [
            &[UPDATE, SETUP][..],
            &[SETUP, UPDATE, SETUP],
            &[UPDATE, SETUP, SETUP],
        ] {
            let database = released::database(cluster, &version);
            assert_ne!(catalogs(&database), want, "{version} is another version");
            for step in steps {
                database.psql("kslate", step);
            }
            let found = difference(&catalogs(&database), &want);
            assert!(found.is_empty(), "{version} by {steps:?}: {found:#?}");
        }
    }
}

#[test]
fn the_comparison_sees_a_difference_of_each_kind() {
    let database = Cluster::shared().fresh_database();
    let want = catalogs(&database);
    let mut blind = Vec::new();
    for change in [
        "alter function kslate_version() volatile",
        "alter function kslate_version() cost 7",
        "grant execute on function kslate_setup() to kslate_user",
        "alter extension kslate drop function kslate_version()",
        "comment on function kslate_version() is 'x'",
        "alter table kslate.claim drop column took_over_from cascade",
        "alter table kslate.claim add column mine text",
        "alter table kslate.claim alter column reason set default ''",
        "alter table kslate.claim alter column queued_at drop not null",
        "alter table kslate.claim set (fillfactor = 71)",
        "comment on column kslate.claim.took_over_from is null",
        "grant select on kslate.claim to kslate_user",
        "grant select (epoch) on kslate.claim to kslate_gateway",
        "drop index kslate.claim_open",
        "create index on kslate.claim (owner)",
        "alter table kslate.claim disable trigger a_keep",
        "drop trigger a_keep on kslate.claim",
        "create or replace view kslate.entry as select record, field, version as seq, value, author, role, evidence, record_version,
           changed_at as added_at from kslate.history where op = 'append' and true is not null",
        "alter view kslate.entry set (security_barrier)",
        "alter table kslate.claim add check (epoch >= 0)",
        "alter table kslate.claim owner to kslate",
        "alter table kslate.claim enable row level security",
        "grant create on schema kslate to kslate_user",
        "insert into kslate.storage (version) values (99)",
    ] {
        // psql shows the catalogs as they are inside the transaction.
        let seen = database.psql("postgres", &format!("begin; {change}; {CATALOGS}; rollback"));
        if seen == want {
            blind.push(change);
        }
    }
    assert!(blind.is_empty(), "{blind:#?}");
    assert_eq!(catalogs(&database), want);
}
