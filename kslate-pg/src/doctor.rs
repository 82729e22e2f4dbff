//! The doctor: what is off in this database, a row per finding; no row means healthy.

use pgrx::prelude::*;

use crate::caller::Caller;
use crate::error::Outcome;
use crate::guard::{PinnedPath, Storage};
use crate::rows;
use crate::scope::Call;
use crate::setup::STORAGE_VERSION;
use crate::spi::{int, Session, Statement};

/// Findings as rows of area, object, finding (all text). Each is one statement, so that one look is one concern. These look
/// at the catalogs only, which anybody may read.
const CATALOG_LOOKS: &[&Statement] = &[
    &TABLES_UNREADABLE,
    &TABLES,
    &TRIGGERS_MISSING,
    &TRIGGERS_FOREIGN,
    &PREPARED,
    &OWNER,
    &POWERFUL,
    &FUNCTIONS,
    &CLOCK,
];

/// These read our tables: only where the first look has found nothing, and the storage is of this
/// library's version.
const ROW_LOOKS: &[&Statement] = &[&VERSIONS, &CLAIMS, &GATES];

const NO: &[pg_sys::Oid] = &[];

static TRIGGERS_MISSING: Statement = Statement::new(
    c"select 'trigger', format('%s on kslate.%s', w.name, w.tab),
        case when t.oid is null then 'missing: run SELECT kslate_setup()'
             else 'disabled: run SELECT kslate_setup()' end
      from (values ('a_version', 'field', 'kslate_field_before'), ('z_history', 'field', 'kslate_field_after'),
          ('a_keep', 'field', 'kslate_keep'), ('a_version', 'claim', 'kslate_claim_before'),
          ('z_history', 'claim', 'kslate_claim_after'), ('a_keep', 'claim', 'kslate_keep'),
          ('a_version', 'record', 'kslate_record_before'), ('z_history', 'record', 'kslate_record_after'),
          ('a_keep', 'record', 'kslate_keep'), ('a_keep', 'history', 'kslate_keep'),
          ('a_keep', 'checkpoint', 'kslate_keep'), ('a_keep', 'class', 'kslate_keep'),
          ('z_changed', 'class', 'kslate_class_changed')) w (name, tab, function)
      join pg_class c on c.relname = w.tab and c.relnamespace = 'kslate'::regnamespace
      left join (pg_trigger t join pg_proc p on p.oid = t.tgfoid
          join pg_depend d on d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e'
          join pg_extension e on e.oid = d.refobjid and e.extname = 'kslate')
        on t.tgrelid = c.oid and t.tgname = w.name and p.proname = w.function
      where t.oid is null or t.tgenabled <> 'O'",
    NO,
);

static TRIGGERS_FOREIGN: Statement = Statement::new(
    c"select 'trigger', format('%s on kslate.%s', t.tgname, c.relname),
        'foreign: a BEFORE trigger that returns NULL or sets versions breaks history; drop it, or make it AFTER'
      from pg_trigger t join pg_class c on c.oid = t.tgrelid
      where c.relnamespace = 'kslate'::regnamespace and not t.tgisinternal
        and not exists (select from pg_depend d join pg_extension e on e.oid = d.refobjid and e.extname = 'kslate'
          where d.classid = 'pg_proc'::regclass and d.objid = t.tgfoid and d.deptype = 'e')",
    NO,
);

static TABLES_UNREADABLE: Statement = Statement::new(
    c"select 'table', format('kslate.%s', w.name),
        case when c.oid is null then 'missing: restore it'
             else format('owned by %s, not by the owner of schema kslate: alter its owner', c.relowner::regrole) end
      from (values ('class'), ('record'), ('field'), ('claim'), ('checkpoint'), ('history'), ('idempotency'), ('storage'),
          ('entry'), ('claims_now'), ('lapsed'), ('gates'), ('timeline')) w (name)
      cross join (select oid, nspowner from pg_namespace where nspname = 'kslate') n
      left join pg_class c on c.relname = w.name and c.relnamespace = n.oid
      where c.oid is null or c.relowner <> n.nspowner",
    NO,
);

static TABLES: Statement = Statement::new(
    c"select 'table', i.inhrelid::regclass::text, 'inherits from a kslate table: its rows meet no trigger of kslate'
      from pg_inherits i join pg_class c on c.oid = i.inhparent where c.relnamespace = 'kslate'::regnamespace
        and c.relkind in ('r', 'p')
      union all
      select 'table', format('kslate.%s', c.relname), format('rule %s rewrites statements: drop it', r.rulename)
      from pg_rewrite r join pg_class c on c.oid = r.ev_class
      where c.relnamespace = 'kslate'::regnamespace and c.relkind = 'r'
      union all
      select 'table', format('kslate.%s', c.relname), 'row level security is on: it hides rows from kslate or its readers'
      from pg_class c where c.relnamespace = 'kslate'::regnamespace and c.relkind = 'r' and c.relrowsecurity",
    NO,
);

static VERSIONS: Statement = Statement::new(
    c"select 'version', r.record, format('record version %s, history has %s changes up to version %s', r.version, h.n, h.most)
      from kslate.record r
      left join (select record, count(*) - 1 as n, max(record_version) as most from kslate.history group by record) h
        using (record)
      where r.version is distinct from h.n or r.version is distinct from h.most
      union all
      select 'version', f.record || ' ' || f.field, format('field version %s, history has %s', f.version, coalesce(h.most, 0))
      from kslate.field f
      left join lateral (
        select max(version) as most from (
          select version from kslate.history h where h.record = f.record and h.field = f.field
          union all
          select 1 from kslate.history h where h.record = f.record and h.record_version = 0 and h.value ? f.field) v) h on true
      where f.version is distinct from h.most
      union all
      select 'version', h.record, 'history without a record' from kslate.history h
      where h.record_version = 0 and not exists (select from kslate.record r where r.record = h.record)",
    NO,
);

static CLAIMS: Statement = Statement::new(
    c"select 'claim', c.record || ' ' || c.field, format('epoch %s, history has %s grants', c.epoch, h.n)
      from kslate.claim c
      left join lateral (select count(*) as n from kslate.history h where h.record = c.record and h.field = c.field
        and h.op in ('claim', 'takeover', 'reattach')) h on true
      where c.epoch <> h.n
      union all
      select 'claim', c.record || ' ' || c.field, 'recheck_at is after expires_at: claim next finds the lapsed lease late'
      from kslate.claim c where c.recheck_at > c.expires_at
      union all
      select 'claim', r.record || ' ' || t.field, 'a task without a claim row: apply the class again'
      from (select distinct on (class) class, definition from kslate.class order by class, version desc) k
      cross join lateral (select f.key as field from jsonb_each(k.definition -> 'fields') f
        where f.value ->> 'mode' = 'task') t
      join kslate.record r on r.class = k.class
      where not exists (select from kslate.claim c where c.record = r.record and c.field = t.field)",
    NO,
);

static GATES: Statement = Statement::new(
    c"select 'gate', g.record, format('resolved, but now required and without a checkpoint: %s',
        array_to_string(g.missing_roles, ', '))
      from kslate.gates g where g.status = 'resolved' and cardinality(g.missing_roles) > 0
        and exists (select from kslate.history h where h.record = g.record and h.field = 'status'
          and h.value = '\"resolved\"' and h.changed_at >= (select k.applied_at from kslate.class k
            where k.class = split_part(g.record, '/', 1) order by k.version desc limit 1))",
    NO,
);

static PREPARED: Statement = Statement::new(
    c"select distinct 'prepared transaction', p.gid,
        format('holds rows of kslate.%s since %s: commit it or roll it back', c.relname, p.prepared)
      from pg_locks l join pg_class c on c.oid = l.relation
      join pg_locks x on x.virtualtransaction = l.virtualtransaction and x.locktype = 'transactionid'
      join pg_prepared_xacts p on p.transaction = x.transactionid
      where l.pid is null and c.relnamespace = 'kslate'::regnamespace and c.relkind = 'r'
        and l.mode in ('RowShareLock', 'RowExclusiveLock', 'ShareRowExclusiveLock', 'ExclusiveLock')",
    NO,
);

static OWNER: Statement = Statement::new(
    c"select 'role', o.rolname::text,
        'owns schema kslate and could be somebody (LOGIN, SUPERUSER or member of a role): its rights are those of every call'
      from pg_namespace n join pg_roles o on o.oid = n.nspowner
      where n.nspname = 'kslate' and (o.rolcanlogin or o.rolsuper
        or exists (select from pg_auth_members m where m.member = o.oid))
      union all
      select 'role', m.member::regrole::text, format('is a member of %s, the owner of schema kslate, and can do all it can',
        o.rolname)
      from pg_namespace n join pg_roles o on o.oid = n.nspowner join pg_auth_members m on m.roleid = o.oid
      where n.nspname = 'kslate'",
    NO,
);

static POWERFUL: Statement = Statement::new(
    c"select 'role', m.member::regrole::text,
        format('may hand on %s (ADMIN OPTION): only a DBA should make gateways and admins', r.rolname)
      from pg_auth_members m join pg_roles r on r.oid = m.roleid join pg_roles u on u.oid = m.member
      where r.rolname in ('kslate_gateway', 'kslate_admin') and m.admin_option and not u.rolsuper
      union all
      select 'role', r.rolname::text, 'can log in: powerful roles are granted, not logged into'
      from pg_roles r where r.rolname in ('kslate_gateway', 'kslate_admin', 'kslate_owner') and r.rolcanlogin",
    NO,
);

static FUNCTIONS: Statement = Statement::new(
    c"select 'function', p.oid::regprocedure::text, f.finding
      from pg_proc p join pg_depend d on d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e'
      join pg_extension e on e.oid = d.refobjid and e.extname = 'kslate'
      cross join lateral (
        select 'is SECURITY DEFINER: recreate the extension' where p.prosecdef
        union all
        select 'may be executed by PUBLIC: run SELECT kslate_setup()' where exists (
          select from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a where a.grantee = 0)
        union all
        select format('trigger function that %s may execute: revoke it', a.grantee::regrole)
        from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
        where p.prorettype = 'trigger'::regtype and a.grantee not in (0, p.proowner)) f (finding)",
    NO,
);

/// A clock that is put forward ends leases before their time.
static CLOCK: Statement = Statement::new(
    c"select 'setting', s.name, format('puts the clock of this session forward by %s: it is for tests only, reset it', s.setting)
      from (select 'kslate.clock_offset' as name, current_setting('kslate.clock_offset') as setting) s where s.setting <> '0'
      union all
      select 'setting', 'kslate.clock_offset', format('is kept for %s in %s: it is for tests only, ALTER … RESET it',
        case when s.setrole = 0 then 'every role' else s.setrole::regrole::text end,
        coalesce(d.datname, 'every database'))
      from pg_db_role_setting s left join pg_database d on d.oid = s.setdatabase
      where (s.setdatabase = 0 or d.datname = current_database())
        and exists (select from unnest(s.setconfig) c where starts_with(lower(c), 'kslate.clock_offset='))
      union all
      select 'setting', p.parname, format('%s may put the clock forward: revoke it',
        case when a.grantee = 0 then 'PUBLIC' else a.grantee::regrole::text end)
      from pg_parameter_acl p cross join aclexplode(p.paracl) a left join pg_roles r on r.oid = a.grantee
      where p.parname = 'kslate.clock_offset' and r.rolsuper is not true",
    NO,
);

static STORAGE: Statement = Statement::new(
    c"select 'storage', 'kslate.storage', format(case
          when s.most > $1 then 'version %s, the library needs %s: install the newer kslate'
          else 'version %s, the library needs %s: run SELECT kslate_setup()' end, s.most, $1)
      from (select max(version) as most from kslate.storage) s where s.most is distinct from $1",
    &[pg_sys::INT8OID],
);

/// What is off: triggers that are missing, disabled or foreign, rules, row level security, versions that do not match history, gates that
/// are open, INHERITS children, prepared transactions that hold rows, an owner role that could be somebody, powerful roles that can log
/// in or be handed on, functions with rights they should not have, a clock put forward, the storage version, tables that are not as this
/// library needs them.
#[pg_extern(stable)]
fn kslate_doctor(
    identity: default!(Option<&str>, "NULL"),
) -> TableIterator<
    'static,
    (
        name!(area, String),
        name!(object, String),
        name!(finding, String),
    ),
> {
    crate::entry(|| {
        let storage = Storage::find()?;
        if storage.check_owner().is_err() {
            // Nothing may run as this owner. The catalogs can be read by anybody.
            Caller::identify(identity)?;
            let _path = PinnedPath::pin();
            return Ok(TableIterator::new(findings(&Session::open(), &[&OWNER])?));
        }
        let call = Call::open_on_any_storage(identity)?;
        let unreadable = !findings(&call.session, &[&TABLES_UNREADABLE])?.is_empty();
        let mut found = findings(&call.session, CATALOG_LOOKS)?;
        let mut other = Vec::new();
        if !unreadable {
            other = findings(&call.session, &[&STORAGE])?;
        }
        if other.is_empty() {
            let unfit = rows::unfit_tables(storage).into_iter();
            other.extend(
                unfit.map(|(table, finding)| {
                    ("table".to_owned(), format!("kslate.{table}"), finding)
                }),
            );
        }
        if other.is_empty() && !unreadable {
            other = findings(&call.session, ROW_LOOKS)?;
        }
        found.extend(other);
        Ok(TableIterator::new(found))
    })
}

fn findings(session: &Session, looks: &[&Statement]) -> Outcome<Vec<(String, String, String)>> {
    let mut found = Vec::new();
    for look in looks {
        pgrx::check_for_interrupts!();
        let version = [int(i64::from(STORAGE_VERSION))];
        let parameters: &[_] = if std::ptr::eq(*look, &STORAGE) {
            &version
        } else {
            &[]
        };
        for row in session.read(look, parameters)?.iter() {
            found.push((row.need(0)?, row.need(1)?, row.need(2)?));
        }
    }
    Ok(found)
}
