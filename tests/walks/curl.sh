# Tried as a newcomer would, with only curl and docs/http.md: an agent dies, its replacement resumes, and everybody can see
# afterwards who decided what and why. Replayed by tests/tests/walks.rs.

printf 'diag-token: diagnoser\nann-token: remediator/ann\nbob-token: remediator/bob\n' > /tmp/keys.yaml

B=http://127.0.0.1:8080
as() { curl -sS -w ' %{http_code}\n' -H "Authorization: Bearer $1" "${@:2}"; }
I=$B/v1/records/incidents/inc-4471

echo "# The diagnoser opens the incident."
as diag-token $B/v1/whoami
as diag-token -X PUT $I
as diag-token -X PUT $I/fields/hypotheses -d '{"value":"a bad deploy","expected_version":0,"evidence":"errors began at 14:02"}'
as diag-token -X PUT $I/fields/planned_action -d '{"value":"roll back payments-api","expected_version":0}'
as diag-token -X PUT $I/fields/planned_action -d '{"value":"roll back payments-api","expected_version":0,"evidence":"hypotheses@1"}'

echo "# Ann takes the work, says how far she is, and is never heard of again."
answer=$(as ann-token -X POST $B/v1/classes/incidents/claim -d '{"field":"remediation","lease_seconds":4}'); echo "$answer"
anns=$(sed 's/.*"claim_id":"\([^"]*\)".*/\1/' <<<"$answer")
as ann-token -X POST $I/fields/actions_taken/entries -d '{"value":"stopped the deploy pipeline","evidence":"planned_action@1"}'
as ann-token -X PUT $I/checkpoint -d '{"document":{"goal":"stop the errors"}}'
as ann-token -X PUT $I/checkpoint -d '{"document":{"goal":"stop the errors","progress":"pipeline stopped; rollback not begun","decisions":["no new deploys"],"open_questions":["which version was good"]}}'

echo "# Bob is too early."
as bob-token -X POST $I/fields/remediation/claim
as bob-token -X POST $B/v1/classes/incidents/claim -d '{"field":"remediation"}'

echo "# Meanwhile the diagnoser learns that it was something else."
as diag-token -X PUT $I/fields/hypotheses -d '{"value":"replica lag","expected_version":0}'
as diag-token -X PATCH $I -d '{"changes":[{"field":"hypotheses","value":"replica lag","expected_version":1,"evidence":"graph 7"},{"field":"planned_action","value":"fail over to replica 2","expected_version":1,"evidence":"hypotheses@2"}]}'
sleep 4

echo "# Bob takes over, and reads what he woke up to."
answer=$(as bob-token -X POST $B/v1/classes/incidents/claim -d '{"field":"remediation","lease_seconds":60}'); echo "$answer"
bobs=$(sed 's/.*"claim_id":"\([^"]*\)".*/\1/' <<<"$answer")
as bob-token $I/checkpoint
as bob-token $I/fields/planned_action

echo "# Ann comes back from the dead, and is told so."
as ann-token -X POST $I/fields/remediation/renew -d "{\"claim_id\":\"$anns\"}"
as ann-token -X POST $I/fields/actions_taken/entries -d "{\"value\":\"rolled back payments-api\",\"claim_id\":\"$anns\"}"

echo "# Bob does what the plan says now."
as bob-token -X POST $I/fields/actions_taken/entries -H 'Idempotency-Key: promote-1' -d "{\"value\":\"promoted replica 2\",\"evidence\":\"planned_action@2\",\"claim_id\":\"$bobs\"}"
as bob-token -X POST $I/fields/actions_taken/entries -H 'Idempotency-Key: promote-1' -d "{\"value\":\"promoted replica 2\",\"evidence\":\"planned_action@2\",\"claim_id\":\"$bobs\"}"
as bob-token -X POST $I/fields/remediation/renew -d "{\"claim_id\":\"$bobs\"}"
as bob-token -X POST $I/fields/remediation/complete -d "{\"claim_id\":\"$bobs\",\"value\":\"failed over\"}"
as bob-token -X PUT $I/fields/status -d '{"value":"resolved","expected_version":1}'

echo "# The day after: who decided what, on what evidence?"
as diag-token $I/blame
as diag-token "$I/history?with_values=false"
