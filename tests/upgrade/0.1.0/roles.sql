-- The database roles, made where they are missing and never altered. Roles are cluster-wide: whoever is a gateway in one
-- database is one in all. Run by kslate_setup() as the caller, a superuser.
do $$
declare
  missing text;
begin
  foreach missing in array array['kslate_owner', 'kslate_gateway', 'kslate_user', 'kslate_reader', 'kslate_admin'] loop
    if not exists (select from pg_catalog.pg_roles where rolname operator(pg_catalog.=) missing) then
      execute pg_catalog.format('create role %I nologin', missing);
    end if;
  end loop;
end $$;
create schema if not exists kslate authorization kslate_owner;
