//! The catalog of the extension: no function runs with its owner's rights, none is PUBLIC's, and the surface is pinned.

use kslate_tests::{root, Cluster, Session};
use std::fs;

const MEMBERS: &str = "pg_depend d join pg_extension e on e.oid = d.refobjid and e.extname = 'kslate' and d.deptype = 'e'
                       and d.refclassid = 'pg_extension'::regclass";

#[tokio::test]
async fn no_function_is_security_definer_or_the_publics() {
    let database = Cluster::shared().fresh_database();
    let dba = Session::login(&database, "postgres").await;
    let functions =
        format!("{MEMBERS} join pg_proc p on p.oid = d.objid and d.classid = 'pg_proc'::regclass");
    let count: i64 = dba
        .run(&format!("select count(*) from {functions}"))
        .await
        .parse()
        .expect("a number");
    assert!(count > 30);
    for (what, condition) in [
        ("SECURITY DEFINER", "p.prosecdef"),
        // No ACL is the default one, which is PUBLIC's.
        ("executable by PUBLIC", "p.proacl is null or exists (select from aclexplode(p.proacl) a where a.grantee = 0)"),
        (
            "a trigger function executable by somebody",
            "p.prorettype = 'trigger'::regtype and exists (select from aclexplode(p.proacl) a where a.grantee <> p.proowner)",
        ),
        ("STRICT: a NULL would be answered with NULL", "p.proisstrict and p.pronargs > 0"),
        ("parallel safe", "p.proparallel <> 'u'"),
        ("executable with grant option", "exists (select from aclexplode(p.proacl) a where a.is_grantable and a.grantee <> p.proowner)"),
        ("granted to other roles than ours",
         "exists (select from aclexplode(p.proacl) a join pg_roles r on r.oid = a.grantee where a.grantee <> p.proowner
            and r.rolname not in ('kslate_user', 'kslate_gateway', 'kslate_admin'))"),
    ] {
        let found = dba
            .run(&format!("select p.oid::regprocedure from {functions} where {condition}"))
            .await;
        assert_eq!(found, "", "{what}");
    }
    let theirs = dba
        .run("select nspname from pg_namespace where nspowner = 'kslate_owner'::regrole")
        .await;
    assert_eq!(
        theirs, "kslate",
        "the owner owns its schema and nothing else"
    );
    let tables = dba
        .run(
            "select relname from pg_class c where (relnamespace = 'kslate'::regnamespace) <> (relowner = 'kslate_owner'::regrole)
               and relkind in ('r', 'v', 'm', 'p', 'S', 'f')",
        )
        .await;
    assert_eq!(tables, "");
    let owner = dba
        .run(
            "select rolcanlogin or rolsuper or rolcreaterole or rolcreatedb or rolreplication or rolbypassrls,
                    (select count(*) from pg_auth_members where member = r.oid or roleid = r.oid)
             from pg_roles r where rolname = 'kslate_owner'",
        )
        .await;
    assert_eq!(owner, "f|0");
    let open = dba
        .run(
            "select c.relname from pg_class c, aclexplode(c.relacl) a where c.relnamespace = 'kslate'::regnamespace and a.grantee = 0
             union all select nspname from pg_namespace n, aclexplode(n.nspacl) a where nspname = 'kslate' and a.grantee = 0",
        )
        .await;
    assert_eq!(open, "", "open to PUBLIC");
}

/// All members of the extension with their signatures and grants, and the tables, views and triggers of the storage.
/// `KSLATE_WRITE_SURFACE=1 cargo test -p kslate-tests --test rights_catalog` writes the file anew.
#[tokio::test]
async fn the_surface_is_the_one_in_surface_txt() {
    let database = Cluster::shared().fresh_database();
    let dba = Session::login(&database, "postgres").await;
    let functions = dba
        .run(&format!(
            "select format('%s(%s) -> %s, %s; %s', p.proname, pg_get_function_arguments(p.oid),
               pg_get_function_result(p.oid), case p.provolatile when 'v' then 'volatile' when 's' then 'stable' else 'immutable' end,
               coalesce((select string_agg(a.grantee::regrole::text, ', ' order by a.grantee::regrole::text)
                 from aclexplode(p.proacl) a where a.grantee <> p.proowner), 'nobody'))
             from {MEMBERS} join pg_proc p on p.oid = d.objid and d.classid = 'pg_proc'::regclass
             order by p.proname"
        ))
        .await;
    let others = dba
        .run(&format!(
            "select pg_describe_object(d.classid, d.objid, 0) from {MEMBERS} where d.classid <> 'pg_proc'::regclass
             order by 1"
        ))
        .await;
    let relations = dba
        .run(
            "select format('%s %s (%s)', case relkind when 'r' then 'table' when 'v' then 'view' else relkind::text end, relname,
               (select string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod), ', ' order by a.attnum)
                from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped))
             from pg_class c where relnamespace = 'kslate'::regnamespace and relkind not in ('i', 'I') order by 1",
        )
        .await;
    let triggers = dba
        .run(
            "select pg_get_triggerdef(t.oid) from pg_trigger t join pg_class c on c.oid = t.tgrelid
             where c.relnamespace = 'kslate'::regnamespace and not t.tgisinternal and t.tgenabled = 'O' order by 1",
        )
        .await;
    let now = format!("{functions}\n{others}\n\n{relations}\n\n{triggers}\n");
    let now = now.replace("\n\n\n", "\n\n");
    let file = root().join("tests/surface.txt");
    if std::env::var_os("KSLATE_WRITE_SURFACE").is_some() {
        fs::write(&file, &now).expect("surface.txt is written");
    }
    let pinned = fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(
        now, pinned,
        "the public surface has changed; KSLATE_WRITE_SURFACE=1 writes it anew"
    );
}
