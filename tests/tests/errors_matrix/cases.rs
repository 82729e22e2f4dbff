//! The cases: a request over HTTP and the same call in SQL, for each error that an operation can raise by itself.

use crate::matrix::Operation;

/// A class whose fields can go wrong in every way.
pub const CLASS: &str = r#"
class: all
roles:
  doer: [apikey:doer, "apikey:doer/*"]
  reader: [apikey:reader]
  left: [apikey:two]
  right: [apikey:two]
  boss: [apikey:boss]
create: [doer]
fields:
  status: { mode: cas, write: [doer], values: [open, resolved], initial: open }
  why: { mode: cas, write: [doer], evidence: required }
  number: { mode: cas, write: [doer], schema: { type: integer } }
  plain: { mode: lww, write: [doer] }
  secret: { mode: lww, write: [boss], read: [boss] }
  fenced: { mode: cas, write: [doer], requires_claim: task }
  log: { mode: append, write: [doer], schema: { type: integer } }
  noted: { mode: append, write: [doer], evidence: required }
  task: { mode: task, write: [doer], override: [boss], lease: { default_seconds: 60, max_seconds: 3600 } }
  judged: { mode: task, write: [doer], evidence: required, values: [same, differs] }
checkpoint:
  required: [reader]
  sections: [goal]
  max_bytes: 1024
"#;

pub const KEYS: &str =
    "doer: doer\ndoer1: doer/1\nreader: reader\ntwo: two\nboss: boss\nstranger: stranger\n\
                        admin: { identity: admin, admin: true }\n";

/// `operation | error | token METHOD path body || kslate_call(arguments`: the request without `/v1/`, the call without its
/// identity. `$no` is a claim_id of no claim, `$judged` that of a claim of doer's, `$long` a text of more than 1 MiB, `$kilo` one
/// of more than 1 KiB. For IDEMPOTENCY_CONFLICT both carry the key `used`. A case without a request is one of SQL only, one
/// without a call one of HTTP only.
const CASES: &str = r#"
create | MALFORMED | doer PUT records/all/new {"fields": {"log": 1}} || kslate_create('all/new', '{"log": 1}'
create | SCOPE_DENIED | reader PUT records/all/new {} || kslate_create('all/new'
create | NOT_FOUND | doer PUT records/nope/new {} || kslate_create('nope/new'
create | NOT_FOUND | doer PUT records/all/new {"fields": {"nope": 1}} || kslate_create('all/new', '{"nope": 1}'
create | IDEMPOTENCY_CONFLICT | doer PUT records/all/one {} || kslate_create('all/one'
create | LEASE_LOST | doer PUT records/all/new {"fields": {"fenced": 1}} || kslate_create('all/new', '{"fenced": 1}'
create | ALREADY_EXISTS | doer PUT records/all/one {"fields": {}} || kslate_create('all/one', '{}'
create | EVIDENCE_REQUIRED | doer PUT records/all/new {"fields": {"why": 1}} || kslate_create('all/new', '{"why": 1}'
create | INVALID_VALUE | doer PUT records/all/new {"fields": {"status": "x"}} || kslate_create('all/new', '{"status": "x"}'
create | INVALID_CHECKPOINT | doer PUT records/all/new {"fields": {"status": "resolved"}} || kslate_create('all/new', '{"status": "resolved"}'
create | PAYLOAD_TOO_LARGE | doer PUT records/all/new {"fields": {"plain": "$long"}} || kslate_create('all/new', '{"plain": "$long"}'
read | MALFORMED | doer GET records/all/-x || kslate_get('all/-x'
read | SCOPE_DENIED | stranger GET records/all/one || kslate_get('all/one'
read | SCOPE_DENIED | doer GET records/all/one?fields=secret || kslate_get('all/one', array['secret']
read | NOT_FOUND | doer GET records/all/none || kslate_get('all/none'
read | NOT_FOUND | doer GET records/all/one?fields=nope || kslate_get('all/one', array['nope']
read field | MALFORMED | doer GET records/all/-x/fields/status || kslate_fields('all/-x', array['status']
read field | SCOPE_DENIED | doer GET records/all/one/fields/secret || kslate_fields('all/one', array['secret']
read field | NOT_FOUND | doer GET records/all/one/fields/nope || kslate_fields('all/one', array['nope']
list | MALFORMED | doer GET records/all?filter=%7B%22log%22%3A1%7D || kslate_list('all', '{"log": 1}'
list | SCOPE_DENIED | doer GET records/all?filter=%7B%22secret%22%3A1%7D || kslate_list('all', '{"secret": 1}'
list | NOT_FOUND | doer GET records/nope || kslate_list('nope'
write | MALFORMED | doer PUT records/all/one/fields/log {"value": 1} || kslate_write('all/one', 'log', '1'
write | MALFORMED | doer PUT records/all/one/fields/number {"value": 1} || kslate_write('all/one', 'number', '1'
write | SCOPE_DENIED | reader PUT records/all/one/fields/plain {"value": 1} || kslate_write('all/one', 'plain', '1'
write | NOT_FOUND | doer PUT records/all/none/fields/plain {"value": 1} || kslate_write('all/none', 'plain', '1'
write | IDEMPOTENCY_CONFLICT | doer PUT records/all/one/fields/plain {"value": 1} || kslate_write('all/one', 'plain', '1'
write | LEASE_LOST | doer PUT records/all/one/fields/fenced {"value": 1, "expected_version": 0} || kslate_write('all/one', 'fenced', '1', 0
write | LEASE_LOST | doer PUT records/all/one/fields/plain {"value": 1, "claim_id": "$no"} || kslate_write('all/one', 'plain', '1', claim_id => '$no'
write | VERSION_CONFLICT | doer PUT records/all/one/fields/number {"value": 1, "expected_version": 7} || kslate_write('all/one', 'number', '1', 7
write | EVIDENCE_REQUIRED | doer PUT records/all/one/fields/why {"value": 1, "expected_version": 0} || kslate_write('all/one', 'why', '1', 0
write | INVALID_VALUE | doer PUT records/all/one/fields/number {"value": "x", "expected_version": 1} || kslate_write('all/one', 'number', '"x"', 1
write | INVALID_CHECKPOINT | doer PUT records/all/one/fields/status {"value": "resolved", "expected_version": 1} || kslate_write('all/one', 'status', '"resolved"', 1
write | PAYLOAD_TOO_LARGE | doer PUT records/all/one/fields/plain {"value": "$long"} || kslate_write('all/one', 'plain', '"$long"'
write many | MALFORMED | doer PATCH records/all/one {"changes": [{"field": "plain", "value": 1}, {"field": "plain", "value": 2}]} || kslate_write_many('all/one', '[{"field": "plain", "value": 1}, {"field": "plain", "value": 2}]'
write many | SCOPE_DENIED | reader PATCH records/all/one {"changes": [{"field": "plain", "value": 1}]} || kslate_write_many('all/one', '[{"field": "plain", "value": 1}]'
write many | NOT_FOUND | doer PATCH records/all/one {"changes": [{"field": "nope", "value": 1}]} || kslate_write_many('all/one', '[{"field": "nope", "value": 1}]'
write many | IDEMPOTENCY_CONFLICT | doer PATCH records/all/one {"changes": [{"field": "plain", "value": 1}]} || kslate_write_many('all/one', '[{"field": "plain", "value": 1}]'
write many | LEASE_LOST | doer PATCH records/all/one {"changes": [{"field": "plain", "value": 1}], "claim_id": "$no"} || kslate_write_many('all/one', '[{"field": "plain", "value": 1}]', '$no'
write many | VERSION_CONFLICT | doer PATCH records/all/one {"changes": [{"field": "number", "value": 1, "expected_version": 7}, {"field": "status", "value": "open", "expected_version": 8}]} || kslate_write_many('all/one', '[{"field": "number", "value": 1, "expected_version": 7}, {"field": "status", "value": "open", "expected_version": 8}]'
write many | EVIDENCE_REQUIRED | doer PATCH records/all/one {"changes": [{"field": "why", "value": 1, "expected_version": 0}]} || kslate_write_many('all/one', '[{"field": "why", "value": 1, "expected_version": 0}]'
write many | INVALID_VALUE | doer PATCH records/all/one {"changes": [{"field": "number", "value": "x", "expected_version": 1}]} || kslate_write_many('all/one', '[{"field": "number", "value": "x", "expected_version": 1}]'
write many | INVALID_CHECKPOINT | doer PATCH records/all/one {"changes": [{"field": "status", "value": "resolved", "expected_version": 1}]} || kslate_write_many('all/one', '[{"field": "status", "value": "resolved", "expected_version": 1}]'
write many | PAYLOAD_TOO_LARGE | doer PATCH records/all/one {"changes": [{"field": "plain", "value": "$long"}]} || kslate_write_many('all/one', '[{"field": "plain", "value": "$long"}]'
append | MALFORMED | doer POST records/all/one/fields/plain/entries {"value": 1} || kslate_append('all/one', 'plain', '1'
append | SCOPE_DENIED | reader POST records/all/one/fields/log/entries {"value": 1} || kslate_append('all/one', 'log', '1'
append | NOT_FOUND | doer POST records/all/one/fields/nope/entries {"value": 1} || kslate_append('all/one', 'nope', '1'
append | IDEMPOTENCY_CONFLICT | doer POST records/all/one/fields/log/entries {"value": 1} || kslate_append('all/one', 'log', '1'
append | LEASE_LOST | doer POST records/all/one/fields/log/entries {"value": 1, "claim_id": "$no"} || kslate_append('all/one', 'log', '1', claim_id => '$no'
append | VERSION_CONFLICT | doer POST records/all/one/fields/log/entries {"value": 1, "expected_version": 9} || kslate_append('all/one', 'log', '1', expected_version => 9
append | EVIDENCE_REQUIRED | doer POST records/all/one/fields/noted/entries {"value": 1} || kslate_append('all/one', 'noted', '1'
append | INVALID_VALUE | doer POST records/all/one/fields/log/entries {"value": {"a": 1}} || kslate_append('all/one', 'log', '{"a": 1}'
append | PAYLOAD_TOO_LARGE | doer POST records/all/one/fields/noted/entries {"value": "$long", "evidence": "e"} || kslate_append('all/one', 'noted', '"$long"', 'e'
entries | MALFORMED | doer GET records/all/one/fields/plain/entries || kslate_entries('all/one', 'plain'
entries | SCOPE_DENIED | stranger GET records/all/one/fields/log/entries || kslate_entries('all/one', 'log'
entries | NOT_FOUND | doer GET records/all/one/fields/nope/entries || kslate_entries('all/one', 'nope'
claim | MALFORMED | doer POST records/all/one/fields/task/claim {"lease_seconds": 3601} || kslate_claim('all/one', 'task', 3601
claim | SCOPE_DENIED | reader POST records/all/one/fields/task/claim {} || kslate_claim('all/one', 'task'
claim | NOT_FOUND | doer POST records/all/one/fields/nope/claim {} || kslate_claim('all/one', 'nope'
claim | IDEMPOTENCY_CONFLICT | doer POST records/all/one/fields/task/claim {} || kslate_claim('all/one', 'task'
claim | COMPLETED | doer POST records/all/done/fields/task/claim {} || kslate_claim('all/done', 'task'
claim | HELD | doer POST records/all/one/fields/task/claim {} || kslate_claim('all/one', 'task'
claim | HELD | doer1 POST records/all/one/fields/task/claim {} || kslate_claim('all/one', 'task'
claim next | MALFORMED | doer POST classes/all/claim {"field": "plain"} || kslate_claim_next('all', 'plain'
claim next | SCOPE_DENIED | reader POST classes/all/claim {"field": "task"} || kslate_claim_next('all', 'task'
claim next | NOT_FOUND | doer POST classes/all/claim {"field": "nope"} || kslate_claim_next('all', 'nope'
claim next | IDEMPOTENCY_CONFLICT | doer POST classes/all/claim {"field": "judged"} || kslate_claim_next('all', 'judged'
renew | MALFORMED | doer POST records/all/one/fields/plain/renew {"claim_id": "$no"} || kslate_renew('all/one', 'plain', '$no'
renew | SCOPE_DENIED | reader POST records/all/one/fields/task/renew {"claim_id": "$no"} || kslate_renew('all/one', 'task', '$no'
renew | NOT_FOUND | doer POST records/all/one/fields/nope/renew {"claim_id": "$no"} || kslate_renew('all/one', 'nope', '$no'
renew | LEASE_LOST | doer POST records/all/one/fields/task/renew {"claim_id": "$no"} || kslate_renew('all/one', 'task', '$no'
release | MALFORMED | doer POST records/all/one/fields/plain/release {"claim_id": "$no"} || kslate_release('all/one', 'plain', '$no'
release | SCOPE_DENIED | reader POST records/all/one/fields/task/release {"claim_id": "$no"} || kslate_release('all/one', 'task', '$no'
release | NOT_FOUND | doer POST records/all/none/fields/task/release {"claim_id": "$no"} || kslate_release('all/none', 'task', '$no'
release | IDEMPOTENCY_CONFLICT | doer POST records/all/one/fields/task/release {"claim_id": "$no"} || kslate_release('all/one', 'task', '$no'
release | LEASE_LOST | doer POST records/all/one/fields/task/release {"claim_id": "$no"} || kslate_release('all/one', 'task', '$no'
complete | MALFORMED | doer POST records/all/one/fields/plain/complete {"claim_id": "$no"} || kslate_complete('all/one', 'plain', '$no'
complete | SCOPE_DENIED | reader POST records/all/one/fields/task/complete {"claim_id": "$no"} || kslate_complete('all/one', 'task', '$no'
complete | NOT_FOUND | doer POST records/nope/x/fields/task/complete {"claim_id": "$no"} || kslate_complete('nope/x', 'task', '$no'
complete | IDEMPOTENCY_CONFLICT | doer POST records/all/one/fields/task/complete {"claim_id": "$no"} || kslate_complete('all/one', 'task', '$no'
complete | LEASE_LOST | doer POST records/all/done/fields/task/complete {"claim_id": "$no"} || kslate_complete('all/done', 'task', '$no'
complete | EVIDENCE_REQUIRED | doer POST records/all/one/fields/judged/complete {"claim_id": "$judged", "value": "same"} || kslate_complete('all/one', 'judged', '$judged', '"same"'
complete | INVALID_VALUE | doer POST records/all/one/fields/judged/complete {"claim_id": "$judged", "value": 1, "evidence": "e"} || kslate_complete('all/one', 'judged', '$judged', '1', 'e'
complete | PAYLOAD_TOO_LARGE | doer POST records/all/one/fields/judged/complete {"claim_id": "$judged", "value": "$long", "evidence": "e"} || kslate_complete('all/one', 'judged', '$judged', '"$long"', 'e'
reopen | MALFORMED | doer POST records/all/one/fields/plain/reopen {} || kslate_reopen('all/one', 'plain'
reopen | SCOPE_DENIED | reader POST records/all/done/fields/task/reopen {} || kslate_reopen('all/done', 'task'
reopen | NOT_FOUND | doer POST records/all/none/fields/task/reopen {} || kslate_reopen('all/none', 'task'
reopen | IDEMPOTENCY_CONFLICT | doer POST records/all/one/fields/task/reopen {"reason": "r"} || kslate_reopen('all/one', 'task', 'r'
reopen | NOT_COMPLETED | doer POST records/all/one/fields/task/reopen {} || kslate_reopen('all/one', 'task'
force release | MALFORMED | boss POST records/all/one/fields/plain/force-release {"expected_epoch": 1, "reason": "r"} || kslate_force_release('all/one', 'plain', 1, 'r'
force release | SCOPE_DENIED | doer POST records/all/one/fields/task/force-release {"expected_epoch": 1, "reason": "r"} || kslate_force_release('all/one', 'task', 1, 'r'
force release | SCOPE_DENIED | boss POST records/all/one/fields/judged/force-release {"expected_epoch": 1, "reason": "r"} || kslate_force_release('all/one', 'judged', 1, 'r'
force release | NOT_FOUND | boss POST records/all/one/fields/nope/force-release {"expected_epoch": 1, "reason": "r"} || kslate_force_release('all/one', 'nope', 1, 'r'
force release | IDEMPOTENCY_CONFLICT | boss POST records/all/one/fields/task/force-release {"expected_epoch": 1, "reason": "r"} || kslate_force_release('all/one', 'task', 1, 'r'
force release | VERSION_CONFLICT | boss POST records/all/one/fields/task/force-release {"expected_epoch": 9, "reason": "r"} || kslate_force_release('all/one', 'task', 9, 'r'
checkpoint save | MALFORMED | two PUT records/all/one/checkpoint {"document": {"goal": 1}} || kslate_checkpoint_save('all/one', '{"goal": 1}'
checkpoint save | MALFORMED | doer PUT records/all/one/checkpoint {"document": {"goal": 1}, "seen_version": 9999} || kslate_checkpoint_save('all/one', '{"goal": 1}', seen_version => 9999
checkpoint save | SCOPE_DENIED | doer PUT records/all/one/checkpoint?role=boss {"document": {"goal": 1}} || kslate_checkpoint_save('all/one', '{"goal": 1}', 'boss'
checkpoint save | NOT_FOUND | doer PUT records/all/none/checkpoint {"document": {"goal": 1}} || kslate_checkpoint_save('all/none', '{"goal": 1}'
checkpoint save | IDEMPOTENCY_CONFLICT | doer PUT records/all/one/checkpoint {"document": {"goal": 1}} || kslate_checkpoint_save('all/one', '{"goal": 1}'
checkpoint save | LEASE_LOST | doer PUT records/all/one/checkpoint {"document": {"goal": 1}, "claim_id": "$no"} || kslate_checkpoint_save('all/one', '{"goal": 1}', claim_id => '$no'
checkpoint save | INVALID_CHECKPOINT | doer PUT records/all/one/checkpoint {"document": {"more": 1}} || kslate_checkpoint_save('all/one', '{"more": 1}'
checkpoint save | PAYLOAD_TOO_LARGE | doer PUT records/all/one/checkpoint {"document": {"goal": "$kilo"}} || kslate_checkpoint_save('all/one', '{"goal": "$kilo"}'
checkpoint load | MALFORMED | two GET records/all/one/checkpoint || kslate_checkpoint_load('all/one'
checkpoint load | SCOPE_DENIED | doer GET records/all/one/checkpoint?role=boss || kslate_checkpoint_load('all/one', 'boss'
checkpoint load | NOT_FOUND | doer GET records/all/one/checkpoint?checkpoint_id=9 || kslate_checkpoint_load('all/one', checkpoint_id => 9
checkpoint list | MALFORMED | doer GET records/all/-x/checkpoints || kslate_checkpoint_list('all/-x'
checkpoint list | SCOPE_DENIED | doer GET records/all/one/checkpoints?role=boss || kslate_checkpoint_list('all/one', 'boss'
checkpoint list | NOT_FOUND | doer GET records/all/none/checkpoints || kslate_checkpoint_list('all/none'
history | MALFORMED | doer GET records/all/-x/history || kslate_history('all/-x'
history | SCOPE_DENIED | doer GET records/all/one/history?field=secret || kslate_history('all/one', 'secret'
history | NOT_FOUND | doer GET records/all/one/history?field=nope || kslate_history('all/one', 'nope'
blame | MALFORMED | doer GET records/all/-x/blame || kslate_blame('all/-x'
blame | SCOPE_DENIED | doer GET records/all/one/blame?field=secret || kslate_blame('all/one', 'secret'
blame | NOT_FOUND | doer GET records/all/one/blame?field=nope || kslate_blame('all/one', 'nope'
field at | MALFORMED | doer || kslate_field_at('all/-x', 'plain', 1
field at | SCOPE_DENIED | doer || kslate_field_at('all/one', 'secret', 1
field at | NOT_FOUND | doer || kslate_field_at('all/one', 'number', 9
class show | MALFORMED | doer GET classes/-x || kslate_class('-x'
class show | NOT_FOUND | doer GET classes/all?version=99 || kslate_class('all', 99
class apply | MALFORMED | admin PUT classes/all {"class": "other", "roles": {"r": ["apikey:r"]}, "fields": {"f": {"mode": "lww", "write": ["r"]}}} ||
class apply | MALFORMED | admin || kslate_class_apply(null
class apply | SCOPE_DENIED | doer PUT classes/all {"class": "all"} ||
class apply | SCOPE_DENIED | - || kslate_class_apply('{"class": "all", "roles": {"r": ["apikey:r"]}, "fields": {"f": {"mode": "lww", "write": ["r"]}}}', identity => 'apikey:admin')
class apply | IDEMPOTENCY_CONFLICT | admin PUT classes/all {"class": "all", "roles": {"r": ["apikey:r"]}, "fields": {"f": {"mode": "lww", "write": ["r"]}}} || kslate_class_apply('{"class": "all", "roles": {"r": ["apikey:r"]}, "fields": {"f": {"mode": "lww", "write": ["r"]}}}'
class apply | INVALID_CLASS | admin PUT classes/all {"class": "all", "fields": {"f": {"mode": "csa"}}} || kslate_class_apply('{"class": "all", "fields": {"f": {"mode": "csa"}}}'
forget keys | MALFORMED | - || kslate_forget_keys('-1 day')
plain SQL on the tables | IMMUTABLE | - || delete from kslate.history
plain SQL on the tables | IMMUTABLE | - || update kslate.checkpoint set role = 'x'
plain SQL on the tables | IMMUTABLE | - || insert into kslate.class values ('x', 1, 'x', '{}', 'x', now())
plain SQL on the tables | IMMUTABLE | - || truncate kslate.record, kslate.field, kslate.claim
plain SQL on the tables | INVALID_CHECKPOINT | - || update kslate.field set value = '"resolved"' where record = 'all/one' and field = 'status'
plain SQL on the tables | MALFORMED | - || update kslate.claim set state = 'x' where record = 'all/one'
plain SQL on the tables | NOT_FOUND | - || insert into kslate.record (record) values ('nope/x')
plain SQL on the tables | UNAVAILABLE | - || begin; alter table kslate.history drop column login cascade; update kslate.field set value = '1' where record = 'all/one' and field = 'status'
plain SQL on the tables | PAYLOAD_TOO_LARGE | - || update kslate.field set value = '"$long"' where record = 'all/one' and field = 'status'
"#;

/// A request and a call of each operation that would be accepted, but for what is done to the database.
const GOOD: &str = r#"
create | | doer PUT records/all/one {} || kslate_create('all/one'
read | | doer GET records/all/one || kslate_get('all/one'
read field | | doer GET records/all/one/fields/status || kslate_fields('all/one', array['status']
list | | doer GET records/all || kslate_list('all'
write | | doer PUT records/all/one/fields/plain {"value": 1} || kslate_write('all/one', 'plain', '1'
write many | | doer PATCH records/all/one {"changes": [{"field": "plain", "value": 1}]} || kslate_write_many('all/one', '[{"field": "plain", "value": 1}]'
append | | doer POST records/all/one/fields/log/entries {"value": 1} || kslate_append('all/one', 'log', '1'
entries | | doer GET records/all/one/fields/log/entries || kslate_entries('all/one', 'log'
claim | | doer POST records/all/two/fields/task/claim {} || kslate_claim('all/two', 'task'
claim next | | doer POST classes/all/claim {"field": "task"} || kslate_claim_next('all', 'task'
renew | | doer POST records/all/one/fields/judged/renew {"claim_id": "$judged"} || kslate_renew('all/one', 'judged', '$judged'
release | | doer POST records/all/one/fields/judged/release {"claim_id": "$judged"} || kslate_release('all/one', 'judged', '$judged'
complete | | doer POST records/all/one/fields/judged/complete {"claim_id": "$judged", "value": "same", "evidence": "e"} || kslate_complete('all/one', 'judged', '$judged', '"same"', 'e'
reopen | | doer POST records/all/done/fields/task/reopen {} || kslate_reopen('all/done', 'task'
force release | | boss POST records/all/one/fields/task/force-release {"expected_epoch": 1, "reason": "r"} || kslate_force_release('all/one', 'task', 1, 'r'
checkpoint save | | doer PUT records/all/one/checkpoint {"document": {"goal": 1}} || kslate_checkpoint_save('all/one', '{"goal": 1}'
checkpoint load | | doer GET records/all/one/checkpoint || kslate_checkpoint_load('all/one'
checkpoint list | | doer GET records/all/one/checkpoints || kslate_checkpoint_list('all/one'
history | | doer GET records/all/one/history || kslate_history('all/one'
blame | | doer GET records/all/one/blame || kslate_blame('all/one'
field at | | doer || kslate_field_at('all/one', 'status', 1
whoami | | doer GET whoami || kslate_whoami(
class list | | doer GET classes || kslate_class_list(
class show | | doer GET classes/all || kslate_class('all'
class apply | | admin PUT classes/new {"class": "new", "roles": {"r": ["apikey:r"]}, "fields": {"f": {"mode": "lww", "write": ["r"]}}} || kslate_class_apply('{"class": "new", "roles": {"r": ["apikey:r"]}, "fields": {"f": {"mode": "lww", "write": ["r"]}}}'
ready | | - GET /readyz ||
doctor | | - || kslate_doctor()
forget keys | | - || kslate_forget_keys('1 s')
setup | | - || kslate_setup()
plain SQL on the tables | | - || update kslate.field set value = '1' where record = 'all/one' and field = 'status'
"#;

/// A case, complete.
#[derive(Clone, Debug)]
pub struct Case {
    pub operation: String,
    pub error: String,
    pub token: String,
    pub request: Option<Request>,
    /// A whole statement, and the role that runs it.
    pub call: Option<(String, &'static str)>,
}

#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub body: String,
    pub key: bool,
}

/// The cases, `judged` being the claim_id that doer holds.
pub fn cases(judged: &str) -> Vec<Case> {
    parse(CASES, judged)
}

/// An accepted request and call of each operation.
pub fn good(judged: &str) -> Vec<Case> {
    parse(GOOD, judged)
}

fn parse(table: &str, judged: &str) -> Vec<Case> {
    table
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| one(line, judged))
        .collect()
}

fn one(line: &str, judged: &str) -> Case {
    let fill = |text: &str| {
        text.replace("$no", "0b9a3d6e-2f0e-4f3e-9d0a-5c1f8c1d7a10")
            .replace("$judged", judged)
            .replace("$long", &"x".repeat(1_100_000))
            .replace("$kilo", &"x".repeat(1_100))
    };
    let (head, call) = line
        .split_once("||")
        .unwrap_or_else(|| panic!("no ||: {line}"));
    let mut head = head.splitn(3, '|').map(str::trim);
    let mut part = || head.next().unwrap_or_default();
    let (operation, error, request) = (part(), part(), part());
    let mut request = request.splitn(4, ' ');
    let mut part = || request.next().unwrap_or_default();
    let (token, method, path, body) = (part(), part(), part(), part());
    let key = error == "IDEMPOTENCY_CONFLICT";
    let request = (!method.is_empty()).then(|| Request {
        method: method.to_string(),
        path: if path.starts_with('/') {
            path.to_string()
        } else {
            format!("/v1/{path}")
        },
        body: fill(body),
        key,
    });
    Case {
        operation: operation.to_string(),
        error: error.to_string(),
        token: token.to_string(),
        request,
        call: Some(call.trim())
            .filter(|call| !call.is_empty())
            .map(|call| statement(&fill(call), token, key)),
    }
}

/// A whole statement: one of the gateway's that names an identity, an administrator's, or a superuser's.
fn statement(call: &str, token: &str, key: bool) -> (String, &'static str) {
    if token == "-" {
        let role = match call {
            call if call.starts_with("kslate_setup") || !call.starts_with("kslate_") => "postgres",
            _ => "matrix_admin",
        };
        let is_call = call.starts_with("kslate_");
        return (
            if is_call {
                format!("select from {call}")
            } else {
                call.to_string()
            },
            role,
        );
    }
    let comma = if call.ends_with('(') { "" } else { ", " };
    let key = if key {
        "idempotency_key => 'used', "
    } else {
        ""
    };
    let identity = if token == "doer1" { "doer/1" } else { token };
    (
        format!("select from {call}{comma}{key}identity => 'apikey:{identity}')"),
        "kslate_server",
    )
}

impl Case {
    /// Fails where this is no case of that operation.
    pub fn belongs_to(&self, operation: &Operation) {
        if let Some(request) = &self.request {
            let (method, route) = operation
                .route
                .as_ref()
                .unwrap_or_else(|| panic!("{} has no route", self.operation));
            let path = request.path.split('?').next().unwrap_or_default();
            let (path, route): (Vec<&str>, Vec<&str>) =
                (path.split('/').collect(), route.split('/').collect());
            let fits = path.len() == route.len()
                && route
                    .iter()
                    .zip(&path)
                    .all(|(route, path)| route == path || route.starts_with('{'));
            assert!(
                fits && request.method == *method,
                "{} is no {method} {route:?}",
                request.path
            );
        }
        if let (Some((call, _)), Some(function)) = (&self.call, &operation.function) {
            assert!(
                call.contains(&format!(" {function}(")),
                "{call} is no {function}"
            );
        }
    }

    pub fn told(&self) -> String {
        let request = self
            .request
            .as_ref()
            .map(|request| format!("{} {} {:.80}", request.method, request.path, request.body));
        format!(
            "{} {}: {} {}",
            self.operation,
            self.error,
            self.token,
            request.unwrap_or_default()
        )
    }
}
