-- fill.sql: a deployment with something of everything, for tests/upgrade/freeze: values and evidence that a dump could lose,
-- classes that changed, leases that are live, lapsed, taken over, reattached, released, forced and completed, changes by hand,
-- checkpoints, resolved records, idempotency keys. Psql as a superuser in kslate_gateway, after scripts/database.
--
\set ON_ERROR_STOP 1
\set diagnoser '''apikey:diagnoser'''
\set w1 '''apikey:remediator/worker-1'''
\set w2 '''apikey:remediator/worker-2'''

select from kslate_class_apply($$
class: deploys
description: Roll-outs, one worker each, for as long as it takes.
roles:
  owner:  [apikey:diagnoser, pg:diagnoser]
  worker: ["apikey:remediator/*"]
create: [owner]
fields:
  status:  { mode: lww, write: [owner, worker], initial: open }
  plan:    { mode: cas, write: [owner], evidence: required }
  step:    { mode: lww, write: [worker], requires_claim: rollout }
  log:     { mode: append, write: [owner, worker] }
  rollout: { mode: task, write: [worker], override: [owner], lease: { default_seconds: 60, max_seconds: 31536000 } }
checkpoint:
  required: [worker]
  sections: [goal, progress]
$$);

-- Incidents: values, evidence, entries, checkpoints, the gate.
select from generate_series(1, 4) n, kslate_create('incidents/inc-' || n, identity => :diagnoser);
select from kslate_create('incidents/inc-5', fields => '{"hypotheses": {"first": [1, null]}, "status": "mitigating"}',
  evidence => 'paged', identity => :diagnoser);
select from kslate_write('incidents/inc-1', 'hypotheses',
  '{"n": 123456789012345678901234567890.10, "s": "\\N tab\t quote'' \u00e9 \\u0000", "deep": {"a": [[], {}]}}', 0,
  E'line one\nline two', identity => :diagnoser);
select from kslate_write('incidents/inc-1', 'hypotheses', '"replica lag"', 1, 'hypotheses@1', identity => :diagnoser);
select from generate_series(0, 2) n,
  kslate_write('incidents/inc-1', 'planned_action', to_jsonb('plan ' || n), n, 'hypotheses@2', identity => :diagnoser);
select from kslate_write_many('incidents/inc-2', '[{"field": "hypotheses", "value": "disk", "expected_version": 0},
  {"field": "status", "value": "mitigating", "expected_version": 1, "evidence": "paged"}]', identity => :diagnoser);
select from generate_series(1, 25) n,
  kslate_append('incidents/inc-1', 'actions_taken', jsonb_build_object('step', n, 'cost', 1.10), 'planned_action@3',
    idempotency_key => 'step-' || n, identity => :w1);
select claim_id from kslate_claim('incidents/inc-1', 'remediation', 60, idempotency_key => 'claim-1', identity => :w1) \gset
select from kslate_release('incidents/inc-1', 'remediation', :'claim_id', 'shift ends', identity => :w1);
select claim_id from kslate_claim('incidents/inc-2', 'remediation', 60, identity => :w2) \gset
select from kslate_complete('incidents/inc-2', 'remediation', :'claim_id', '{"done": true}', 'looked', identity => :w2);
select from kslate_checkpoint_save('incidents/inc-2',
  '{"goal": "g", "decisions": [{"why": "lag"}], "progress": null, "open_questions": "none", "more": 1.10}', identity => :w2);
select from kslate_checkpoint_save('incidents/inc-1',
  '{"goal": "g", "decisions": [], "progress": 1, "open_questions": []}', seen_version => 3, identity => :w1);
select from kslate_write('incidents/inc-2', 'status', '"resolved"', 2, 'remediation@1', identity => :diagnoser);
update kslate.field set value = '"mitigating"', evidence = 'by hand' where record = 'incidents/inc-3' and field = 'status';
select from kslate_class_apply((select replace(source, 'worked by', 'worked by both,') from kslate.class where class = 'incidents'));

-- Roll-outs: each lease in a state of its own.
select from unnest(array['open', 'live', 'taken-over', 'reattached', 'again', 'lapsed', 'lapsed-taken-over', 'completed', 'reopened',
  'released', 'forced', 'hand-granted', 'hand-renewed', 'twice']) key, kslate_create('deploys/' || key, identity => :diagnoser);
select from unnest(array['taken-over', 'reattached', 'again', 'lapsed', 'lapsed-taken-over', 'completed', 'reopened', 'hand-renewed',
  'twice']) key, kslate_claim('deploys/' || key, 'rollout', 1, identity => :w1);
select pg_sleep(1.1);
select from unnest(array['taken-over', 'reattached', 'completed', 'reopened', 'hand-renewed']) key,
  kslate_claim('deploys/' || key, 'rollout', 30000000, identity => :w2);
select from unnest(array['lapsed-taken-over', 'twice']) key, kslate_claim('deploys/' || key, 'rollout', 1, identity => :w2);
select from kslate_claim('deploys/again', 'rollout', 30000000, identity => :w1);
select from kslate_claim('deploys/reattached', 'rollout', 30000000, reattach => true, identity => :w2);
select claim_id from kslate_claim('deploys/live', 'rollout', 30000000, identity => :w2) \gset
select from kslate_renew('deploys/live', 'rollout', :'claim_id', 31536000, identity => :w2);
select from kslate_write('deploys/live', 'step', '{"percent": 10}', claim_id => :'claim_id', identity => :w2);
select claim_id from kslate.claim where record = 'deploys/taken-over' and field = 'rollout' \gset
select from generate_series(1, 3) n,
  kslate_append('deploys/taken-over', 'log', to_jsonb('step ' || n), claim_id => :'claim_id', identity => :w2);
select from kslate_checkpoint_save('deploys/taken-over', '{"goal": "out", "progress": 3}', claim_id => :'claim_id', identity => :w2);
select claim_id from kslate.claim where record = 'deploys/completed' and field = 'rollout' \gset
select from kslate_complete('deploys/completed', 'rollout', :'claim_id', '"out"', identity => :w2);
select claim_id from kslate.claim where record = 'deploys/reopened' and field = 'rollout' \gset
select from kslate_complete('deploys/reopened', 'rollout', :'claim_id', '"half"', identity => :w2);
select from kslate_reopen('deploys/reopened', 'rollout', 'not quite', identity => :w1);
select claim_id from kslate_claim('deploys/released', 'rollout', 60, identity => :w1) \gset
select from kslate_release('deploys/released', 'rollout', :'claim_id', 'lunch', identity => :w1);
select from kslate_claim('deploys/forced', 'rollout', 600, identity => :w1);
select from kslate_force_release('deploys/forced', 'rollout', 1, 'the worker is stuck', identity => :diagnoser);
update kslate.claim set state = 'claimed', owner = 'apikey:remediator/worker-3', expires_at = '2090-01-01' where record = 'deploys/hand-granted';
update kslate.claim set expires_at = '2091-01-01' where record = 'deploys/hand-renewed';
select pg_sleep(1.1);
select from kslate_claim('deploys/twice', 'rollout', 30000000, identity => :w1);
select from kslate_write('deploys/twice', 'status', '"half way"', identity => :diagnoser);

-- Who holds a lease for months holds it for decades, so that it is live whenever the dump is restored. As if it had been granted so:
-- no trigger sees it.
set session_replication_role = replica;
update kslate.claim set expires_at = expires_at + interval '60 years' where lease_seconds >= 30000000;
