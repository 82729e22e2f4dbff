-- Views for people: each answers without a join. Run by kslate_setup() each time, as the owner of schema kslate.

-- The entries of append fields.
create or replace view kslate.entry as
select record, field, version as seq, value, author, role, evidence, record_version, changed_at as added_at
from kslate.history
where op = 'append';

-- Who holds what, live or lapsed, and for how long.
create or replace view kslate.claims_now as
select record, field, class, owner, role, epoch, claimed_at, expires_at,
       expires_at > now_ as live,
       case when isfinite(expires_at) then date_trunc('second', expires_at - now_) end as remaining,
       took_over_from
from kslate.claim, lateral (select clock_timestamp() as now_) clock
where state = 'claimed';

-- Leases that have run out and that nobody has taken over yet.
create or replace view kslate.lapsed as
select record, field, class, owner, role, epoch, claimed_at, expires_at,
       case when isfinite(expires_at) then date_trunc('second', clock_timestamp() - expires_at) end as lapsed_for
from kslate.claim
where state = 'claimed' and expires_at <= clock_timestamp();

-- Which roles must still save a checkpoint before a record's status may become resolved.
create or replace view kslate.gates as
select r.record, f.value #>> '{}' as status,
       array(
         select required.role
         from jsonb_array_elements_text(c.definition #> '{checkpoint,required}') with ordinality as required (role, place)
         where not exists (select from kslate.checkpoint p where p.record = r.record and p.role = required.role)
         order by required.place
       ) as missing_roles
from kslate.record r
join kslate.class c on c.class = r.class
left join kslate.field f on f.record = r.record and f.field = 'status'
where c.version = (select max(latest.version) from kslate.class latest where latest.class = r.class)
  and jsonb_array_length(c.definition #> '{checkpoint,required}') > 0;

-- History and checkpoints of a record together, in the order they happened.
create or replace view kslate.timeline as
select record, record_version, changed_at as at, op, field, version, value, author, role, evidence, epoch, took_over_from,
       reason, null::bigint as checkpoint_id
from kslate.history
union all
select record, record_version, saved_at, 'checkpoint', null, null, document, author, role, null, null, null, null, checkpoint_id
from kslate.checkpoint;
