-- Who may do what. PUBLIC may do nothing. Run by kslate_setup() each time, as the caller, a superuser.

revoke all on schema kslate from public;
revoke all on all tables in schema kslate from public;

grant usage on schema kslate to kslate_reader, kslate_gateway;
grant select on all tables in schema kslate to kslate_reader;
grant select on kslate.storage to kslate_gateway;
-- How many leases are live, for the server's metrics; not whose.
grant select (state, expires_at) on kslate.claim to kslate_gateway;

do $$
declare
  f record;
begin
  for f in
    select p.oid::pg_catalog.regprocedure as signature, p.proname as name,
           p.prorettype operator(pg_catalog.=) 'pg_catalog.trigger'::pg_catalog.regtype as is_trigger
    from pg_catalog.pg_depend d
    join pg_catalog.pg_extension e on e.oid operator(pg_catalog.=) d.refobjid
    join pg_catalog.pg_proc p on p.oid operator(pg_catalog.=) d.objid
    where d.refclassid operator(pg_catalog.=) 'pg_catalog.pg_extension'::pg_catalog.regclass
      and d.classid operator(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass
      and d.deptype operator(pg_catalog.=) 'e'
      and e.extname operator(pg_catalog.=) 'kslate'
  loop
    execute pg_catalog.format('revoke all on function %s from public', f.signature);
    if f.is_trigger or f.name operator(pg_catalog.=) 'kslate_setup' then
      continue;
    elsif f.name operator(pg_catalog.=) 'kslate_class_apply' then
      execute pg_catalog.format('grant execute on function %s to kslate_admin, kslate_gateway', f.signature);
    elsif f.name operator(pg_catalog.=) any (array['kslate_doctor', 'kslate_forget_keys']) then
      execute pg_catalog.format('grant execute on function %s to kslate_admin', f.signature);
    else
      execute pg_catalog.format('grant execute on function %s to kslate_user, kslate_gateway, kslate_admin', f.signature);
    end if;
  end loop;
end $$;
