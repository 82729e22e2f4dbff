-- The triggers: versions, history, the gate, immutability. Run by kslate_setup() each time, whatever the storage version:
-- DROP EXTENSION CASCADE takes them away and leaves the tables. The mark before
-- the functions' names stands for the quoted schema of the extension. It must not occur in a comment or in quotes, where
-- quoting would not help: a schema's name can contain anything.
--
-- None has a WHEN: a false WHEN costs more than a native function that returns at once. None is ENABLE ALWAYS: that would
-- stop a logical subscriber and a data-only restore once a class requires more than it did.

create or replace trigger a_version before insert or update on kslate.field
  for each row execute function @extension@.kslate_field_before();
create or replace trigger z_history after insert or update on kslate.field
  for each row execute function @extension@.kslate_field_after();
create or replace trigger a_keep before delete or truncate on kslate.field
  for each statement execute function @extension@.kslate_keep();

create or replace trigger a_version before insert or update on kslate.claim
  for each row execute function @extension@.kslate_claim_before();
create or replace trigger z_history after update on kslate.claim
  for each row execute function @extension@.kslate_claim_after();
create or replace trigger a_keep before delete or truncate on kslate.claim
  for each statement execute function @extension@.kslate_keep();

create or replace trigger a_version before insert or update on kslate.record
  for each row execute function @extension@.kslate_record_before();
create or replace trigger z_history after insert on kslate.record
  for each row execute function @extension@.kslate_record_after();
create or replace trigger a_keep before delete or truncate on kslate.record
  for each statement execute function @extension@.kslate_keep();

create or replace trigger a_keep before insert or update or delete or truncate on kslate.history
  for each statement execute function @extension@.kslate_keep();
create or replace trigger a_keep before insert or update or delete or truncate on kslate.checkpoint
  for each statement execute function @extension@.kslate_keep();
create or replace trigger a_keep before insert or update or delete or truncate on kslate.class
  for each statement execute function @extension@.kslate_keep();
create or replace trigger z_changed after insert or update or delete or truncate on kslate.class
  for each statement execute function @extension@.kslate_class_changed();

-- A replaced trigger stays disabled where somebody disabled it.
alter table kslate.field enable trigger a_version, enable trigger z_history, enable trigger a_keep;
alter table kslate.claim enable trigger a_version, enable trigger z_history, enable trigger a_keep;
alter table kslate.record enable trigger a_version, enable trigger z_history, enable trigger a_keep;
alter table kslate.history enable trigger a_keep;
alter table kslate.checkpoint enable trigger a_keep;
alter table kslate.class enable trigger a_keep, enable trigger z_changed;
