-- A role named kslate has schema kslate first in its search_path once that is there: the functions would land among the tables.
do $$
begin
  if exists (select from pg_catalog.pg_extension e where e.extname operator(pg_catalog.=) 'kslate'
             and e.extnamespace operator(pg_catalog.=) pg_catalog.to_regnamespace('kslate')::pg_catalog.oid) then
    raise exception 'schema kslate holds the tables of kslate; its functions need another one'
      using hint = 'CREATE EXTENSION kslate SCHEMA public';
  end if;
end $$;

-- EXECUTE is PUBLIC's by default. kslate_setup() grants it to the roles that may have it.
do $$
declare
  f pg_catalog.regprocedure;
begin
  for f in
    select d.objid::pg_catalog.regprocedure
    from pg_catalog.pg_depend d
    join pg_catalog.pg_extension e on e.oid operator(pg_catalog.=) d.refobjid
    where d.classid operator(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass
      and d.refclassid operator(pg_catalog.=) 'pg_catalog.pg_extension'::pg_catalog.regclass
      and d.deptype operator(pg_catalog.=) 'e'
      and e.extname operator(pg_catalog.=) 'kslate'
  loop
    execute pg_catalog.format('revoke all on function %s from public', f);
  end loop;
end $$;
