-- A claim whose refusal is an answer, since pgbench gives a client up at its first error.
create function bench.try_claim(record text) returns uuid language plpgsql as $$
begin
  return (select claim_id from kslate_claim(record, 'task', 60));
exception when lock_not_available then
  return null;
end $$;
