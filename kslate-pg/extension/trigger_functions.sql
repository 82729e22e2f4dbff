-- Trigger functions. They are written against the C interface, since the hot path meets four of them per change.
-- Nobody gets EXECUTE on them: hung on a table of one's own they would write made-up history.
create function kslate_field_before() returns trigger language c as 'MODULE_PATHNAME', 'kslate_field_before';
create function kslate_field_after() returns trigger language c as 'MODULE_PATHNAME', 'kslate_field_after';
create function kslate_claim_before() returns trigger language c as 'MODULE_PATHNAME', 'kslate_claim_before';
create function kslate_claim_after() returns trigger language c as 'MODULE_PATHNAME', 'kslate_claim_after';
create function kslate_record_before() returns trigger language c as 'MODULE_PATHNAME', 'kslate_record_before';
create function kslate_record_after() returns trigger language c as 'MODULE_PATHNAME', 'kslate_record_after';
create function kslate_keep() returns trigger language c as 'MODULE_PATHNAME', 'kslate_keep';
create function kslate_class_changed() returns trigger language c as 'MODULE_PATHNAME', 'kslate_class_changed';
