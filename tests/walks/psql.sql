-- Tried as a new back-end engineer would, with only psql and docs/sql.md: an agent dies, its replacement resumes, and everybody
-- can see afterwards who decided what and why. Replayed by tests/tests/walks.rs.

create role diagnoser in role kslate_user;
create role "remediator/ann" in role kslate_user;
create role "remediator/bob" in role kslate_user;

\echo The diagnoser opens the incident.
set role diagnoser;
select identity, roles from kslate_whoami();
select record, record_version from kslate_create('incidents/inc-4471');
select version from kslate_write('incidents/inc-4471', 'hypotheses', '"a bad deploy"', expected_version => 0, evidence => 'errors began at 14:02');
select version from kslate_write('incidents/inc-4471', 'planned_action', '"roll back payments-api"', expected_version => 0);
select version from kslate_write('incidents/inc-4471', 'planned_action', '"roll back payments-api"', expected_version => 0, evidence => 'hypotheses@1');

\echo Ann takes the work, says how far she is, and is never heard of again.
set role "remediator/ann";
select * from kslate_claim_next('incidents', 'remediation', lease_seconds => 4) \gset ann_
\echo :ann_owner holds :ann_record in epoch :ann_epoch
select version from kslate_append('incidents/inc-4471', 'actions_taken', '"stopped the deploy pipeline"', evidence => 'planned_action@1');
select checkpoint_id, record_version from kslate_checkpoint_save('incidents/inc-4471', '{"goal": "stop the errors"}');
select checkpoint_id, record_version from kslate_checkpoint_save('incidents/inc-4471', '{"goal": "stop the errors",
  "progress": "pipeline stopped; rollback not begun", "decisions": ["no new deploys"], "open_questions": ["which version was good"]}');

\echo Bob is too early.
set role "remediator/bob";
select owner from kslate_claim('incidents/inc-4471', 'remediation');
select count(*) as free_now from kslate_claim_next('incidents', 'remediation');

\echo Meanwhile the diagnoser learns that it was something else.
set role diagnoser;
select version from kslate_write('incidents/inc-4471', 'hypotheses', '"replica lag"', expected_version => 0);
select version from kslate_write('incidents/inc-4471', 'hypotheses', '"replica lag"', expected_version => 1, evidence => 'graph 7');
select version from kslate_write('incidents/inc-4471', 'planned_action', '"fail over to replica 2"', expected_version => 1, evidence => 'hypotheses@2');
select pg_sleep(4);

\echo Bob takes over, and reads what he woke up to.
set role "remediator/bob";
select * from kslate_claim_next('incidents', 'remediation', lease_seconds => 60) \gset
\echo :owner holds :record in epoch :epoch, taken over from :took_over_from
select document ->> 'progress' as progress, record_version from kslate_checkpoint_load('incidents/inc-4471');
select changed.* from kslate_checkpoint_load('incidents/inc-4471'),
  json_to_recordset(changed_fields) as changed (field text, version int, author text, evidence text);
select value #>> '{}' as plan, version from kslate_fields('incidents/inc-4471', array['planned_action']);

\echo Ann comes back from the dead, and is told so.
set role "remediator/ann";
select epoch from kslate_renew('incidents/inc-4471', 'remediation', :'ann_claim_id');

\echo Bob does what the plan says now.
set role "remediator/bob";
select version from kslate_append('incidents/inc-4471', 'actions_taken', '"promoted replica 2"', evidence => 'planned_action@2', claim_id => :'claim_id', idempotency_key => 'promote-1');
select version from kslate_append('incidents/inc-4471', 'actions_taken', '"promoted replica 2"', evidence => 'planned_action@2', claim_id => :'claim_id', idempotency_key => 'promote-1');
select epoch, lease_seconds from kslate_renew('incidents/inc-4471', 'remediation', :'claim_id');
select version from kslate_complete('incidents/inc-4471', 'remediation', :'claim_id', '"failed over"');
select version, record_version from kslate_write('incidents/inc-4471', 'status', '"resolved"', expected_version => 1);

\echo The day after: who decided what, on what evidence?
set role diagnoser;
select field, seq, version, author, evidence, points_to ->> 'value' as because, points_to ->> 'author' as said_by from kslate_blame('incidents/inc-4471');
select value, author, evidence from kslate_field_at('incidents/inc-4471', 'hypotheses', 1);
select record_version, op, field, version, author, took_over_from from kslate_history('incidents/inc-4471');
