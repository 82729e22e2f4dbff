--
-- PostgreSQL database dump
--


-- Dumped from database version 15.20 (Debian 15.20-0+deb12u1)
-- Dumped by pg_dump version 15.20 (Debian 15.20-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: kslate; Type: SCHEMA; Schema: -; Owner: kslate_owner
--

CREATE SCHEMA kslate;


ALTER SCHEMA kslate OWNER TO kslate_owner;

--
-- Name: kslate; Type: EXTENSION; Schema: -; Owner: -
--

CREATE EXTENSION IF NOT EXISTS kslate WITH SCHEMA public;


--
-- Name: EXTENSION kslate; Type: COMMENT; Schema: -; Owner: 
--

COMMENT ON EXTENSION kslate IS 'shared records for fleets of agents (scripts 202d76550d01cb2d)';


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: checkpoint; Type: TABLE; Schema: kslate; Owner: kslate_owner
--

CREATE TABLE kslate.checkpoint (
    record text NOT NULL COLLATE pg_catalog."C",
    checkpoint_id bigint NOT NULL,
    role text NOT NULL COLLATE pg_catalog."C",
    document jsonb NOT NULL,
    record_version bigint NOT NULL,
    author text NOT NULL,
    saved_at timestamp with time zone NOT NULL
);


ALTER TABLE kslate.checkpoint OWNER TO kslate_owner;

--
-- Name: claim; Type: TABLE; Schema: kslate; Owner: kslate_owner
--

CREATE TABLE kslate.claim (
    record text NOT NULL COLLATE pg_catalog."C",
    field text NOT NULL COLLATE pg_catalog."C",
    class text NOT NULL COLLATE pg_catalog."C",
    state text DEFAULT 'open'::text NOT NULL COLLATE pg_catalog."C",
    owner text,
    role text,
    claim_id uuid,
    epoch bigint DEFAULT 0 NOT NULL,
    lease_seconds integer,
    queued_at timestamp with time zone NOT NULL,
    claimed_at timestamp with time zone,
    expires_at timestamp with time zone,
    recheck_at timestamp with time zone,
    version bigint DEFAULT 0 NOT NULL,
    record_version bigint DEFAULT 0 NOT NULL,
    changed_by text,
    changed_role text,
    changed_at timestamp with time zone,
    reason text,
    ended text COLLATE pg_catalog."C",
    CONSTRAINT claim_check CHECK (((state = 'claimed'::text) = ((owner IS NOT NULL) AND (claim_id IS NOT NULL) AND (expires_at IS NOT NULL) AND (recheck_at IS NOT NULL)))),
    CONSTRAINT claim_state_check CHECK ((state = ANY (ARRAY['open'::text, 'claimed'::text, 'completed'::text])))
)
WITH (fillfactor='70', autovacuum_vacuum_scale_factor='0.01', autovacuum_vacuum_cost_delay='0');


ALTER TABLE kslate.claim OWNER TO kslate_owner;

--
-- Name: COLUMN claim.version; Type: COMMENT; Schema: kslate; Owner: kslate_owner
--

COMMENT ON COLUMN kslate.claim.version IS 'the version of the task''s value: complete and reopen count';


--
-- Name: COLUMN claim.ended; Type: COMMENT; Schema: kslate; Owner: kslate_owner
--

COMMENT ON COLUMN kslate.claim.ended IS 'how the claim before the present state ended: released, force_released, lapsed, taken_over, reattached, completed, reopened';


--
-- Name: claims_now; Type: VIEW; Schema: kslate; Owner: kslate_owner
--

CREATE VIEW kslate.claims_now AS
 SELECT claim.record,
    claim.field,
    claim.class,
    claim.owner,
    claim.role,
    claim.epoch,
    claim.claimed_at,
    claim.expires_at,
    (claim.expires_at > clock.now_) AS live,
        CASE
            WHEN isfinite(claim.expires_at) THEN date_trunc('second'::text, (claim.expires_at - clock.now_))
            ELSE NULL::interval
        END AS remaining
   FROM kslate.claim,
    LATERAL ( SELECT clock_timestamp() AS now_) clock
  WHERE (claim.state = 'claimed'::text);


ALTER TABLE kslate.claims_now OWNER TO kslate_owner;

--
-- Name: class; Type: TABLE; Schema: kslate; Owner: kslate_owner
--

CREATE TABLE kslate.class (
    class text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    source text NOT NULL,
    definition jsonb NOT NULL,
    applied_by text NOT NULL,
    applied_at timestamp with time zone NOT NULL
);


ALTER TABLE kslate.class OWNER TO kslate_owner;

--
-- Name: history; Type: TABLE; Schema: kslate; Owner: kslate_owner
--

CREATE TABLE kslate.history (
    record text NOT NULL COLLATE pg_catalog."C",
    record_version bigint NOT NULL,
    op text NOT NULL COLLATE pg_catalog."C",
    field text COLLATE pg_catalog."C",
    version bigint,
    value jsonb,
    author text NOT NULL,
    role text,
    evidence text,
    changed_at timestamp with time zone NOT NULL,
    epoch bigint,
    took_over_from text,
    reason text,
    login text NOT NULL
);


ALTER TABLE kslate.history OWNER TO kslate_owner;

--
-- Name: entry; Type: VIEW; Schema: kslate; Owner: kslate_owner
--

CREATE VIEW kslate.entry AS
 SELECT history.record,
    history.field,
    history.version AS seq,
    history.value,
    history.author,
    history.role,
    history.evidence,
    history.record_version,
    history.changed_at AS added_at
   FROM kslate.history
  WHERE (history.op = 'append'::text);


ALTER TABLE kslate.entry OWNER TO kslate_owner;

--
-- Name: field; Type: TABLE; Schema: kslate; Owner: kslate_owner
--

CREATE TABLE kslate.field (
    record text NOT NULL COLLATE pg_catalog."C",
    field text NOT NULL COLLATE pg_catalog."C",
    value jsonb,
    version bigint NOT NULL,
    author text NOT NULL,
    role text,
    evidence text,
    record_version bigint NOT NULL,
    changed_at timestamp with time zone NOT NULL
)
WITH (fillfactor='80');


ALTER TABLE kslate.field OWNER TO kslate_owner;

--
-- Name: record; Type: TABLE; Schema: kslate; Owner: kslate_owner
--

CREATE TABLE kslate.record (
    record text NOT NULL COLLATE pg_catalog."C",
    class text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    version bigint DEFAULT 0 NOT NULL,
    created_by text NOT NULL,
    created_at timestamp with time zone NOT NULL
)
WITH (fillfactor='80');


ALTER TABLE kslate.record OWNER TO kslate_owner;

--
-- Name: gates; Type: VIEW; Schema: kslate; Owner: kslate_owner
--

CREATE VIEW kslate.gates AS
 SELECT r.record,
    (f.value #>> '{}'::text[]) AS status,
    ARRAY( SELECT required.role
           FROM jsonb_array_elements_text((c.definition #> '{checkpoint,required}'::text[])) WITH ORDINALITY required(role, place)
          WHERE (NOT (EXISTS ( SELECT
                   FROM kslate.checkpoint p
                  WHERE ((p.record = r.record) AND (p.role = required.role)))))
          ORDER BY required.place) AS missing_roles
   FROM ((kslate.record r
     JOIN kslate.class c ON ((c.class = r.class)))
     LEFT JOIN kslate.field f ON (((f.record = r.record) AND (f.field = 'status'::text))))
  WHERE ((c.version = ( SELECT max(latest.version) AS max
           FROM kslate.class latest
          WHERE (latest.class = r.class))) AND (jsonb_array_length((c.definition #> '{checkpoint,required}'::text[])) > 0));


ALTER TABLE kslate.gates OWNER TO kslate_owner;

--
-- Name: idempotency; Type: TABLE; Schema: kslate; Owner: kslate_owner
--

CREATE TABLE kslate.idempotency (
    record text NOT NULL COLLATE pg_catalog."C",
    identity text NOT NULL COLLATE pg_catalog."C",
    key text NOT NULL COLLATE pg_catalog."C",
    request_hash bytea NOT NULL,
    answer text NOT NULL,
    created_at timestamp with time zone NOT NULL
);


ALTER TABLE kslate.idempotency OWNER TO kslate_owner;

--
-- Name: lapsed; Type: VIEW; Schema: kslate; Owner: kslate_owner
--

CREATE VIEW kslate.lapsed AS
 SELECT claim.record,
    claim.field,
    claim.class,
    claim.owner,
    claim.role,
    claim.epoch,
    claim.claimed_at,
    claim.expires_at,
        CASE
            WHEN isfinite(claim.expires_at) THEN date_trunc('second'::text, (clock_timestamp() - claim.expires_at))
            ELSE NULL::interval
        END AS lapsed_for
   FROM kslate.claim
  WHERE ((claim.state = 'claimed'::text) AND (claim.expires_at <= clock_timestamp()));


ALTER TABLE kslate.lapsed OWNER TO kslate_owner;

--
-- Name: storage; Type: TABLE; Schema: kslate; Owner: kslate_owner
--

CREATE TABLE kslate.storage (
    version integer NOT NULL,
    migrated_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);


ALTER TABLE kslate.storage OWNER TO kslate_owner;

--
-- Name: timeline; Type: VIEW; Schema: kslate; Owner: kslate_owner
--

CREATE VIEW kslate.timeline AS
 SELECT history.record,
    history.record_version,
    history.changed_at AS at,
    history.op,
    history.field,
    history.version,
    history.value,
    history.author,
    history.role,
    history.evidence,
    history.epoch,
    history.took_over_from,
    history.reason,
    NULL::bigint AS checkpoint_id
   FROM kslate.history
UNION ALL
 SELECT checkpoint.record,
    checkpoint.record_version,
    checkpoint.saved_at AS at,
    'checkpoint'::text AS op,
    NULL::text AS field,
    NULL::bigint AS version,
    checkpoint.document AS value,
    checkpoint.author,
    checkpoint.role,
    NULL::text AS evidence,
    NULL::bigint AS epoch,
    NULL::text AS took_over_from,
    NULL::text AS reason,
    checkpoint.checkpoint_id
   FROM kslate.checkpoint;


ALTER TABLE kslate.timeline OWNER TO kslate_owner;

--
-- Data for Name: checkpoint; Type: TABLE DATA; Schema: kslate; Owner: kslate_owner
--

COPY kslate.checkpoint (record, checkpoint_id, role, document, record_version, author, saved_at) FROM stdin;
incidents/inc-2	1	remediator	{"goal": "g", "more": 1.10, "progress": null, "decisions": [{"why": "lag"}], "open_questions": "none"}	4	apikey:remediator/worker-2	2026-11-29 22:08:01.691915+00
incidents/inc-1	1	remediator	{"goal": "g", "progress": 1, "decisions": [], "open_questions": []}	3	apikey:remediator/worker-1	2026-11-29 22:08:01.695832+00
deploys/taken-over	1	worker	{"goal": "out", "progress": 3}	5	apikey:remediator/worker-2	2026-11-29 22:08:02.908066+00
\.


--
-- Data for Name: claim; Type: TABLE DATA; Schema: kslate; Owner: kslate_owner
--

COPY kslate.claim (record, field, class, state, owner, role, claim_id, epoch, lease_seconds, queued_at, claimed_at, expires_at, recheck_at, version, record_version, changed_by, changed_role, changed_at, reason, ended) FROM stdin;
incidents/inc-3	remediation	incidents	open	\N	\N	\N	0	\N	2026-11-29 22:08:01.61858+00	\N	\N	\N	0	0	\N	\N	\N	\N	\N
incidents/inc-4	remediation	incidents	open	\N	\N	\N	0	\N	2026-11-29 22:08:01.618765+00	\N	\N	\N	0	0	\N	\N	\N	\N	\N
incidents/inc-5	remediation	incidents	open	\N	\N	\N	0	\N	2026-11-29 22:08:01.62413+00	\N	\N	\N	0	0	\N	\N	\N	\N	\N
incidents/inc-1	remediation	incidents	open	\N	\N	\N	1	\N	2026-11-29 22:08:01.675888+00	\N	\N	\N	0	32	apikey:remediator/worker-1	remediator	2026-11-29 22:08:01.675888+00	shift ends	released
incidents/inc-2	remediation	incidents	completed	\N	\N	\N	1	\N	2026-11-29 22:08:01.618249+00	\N	\N	\N	1	4	apikey:remediator/worker-2	remediator	2026-11-29 22:08:01.688116+00	\N	completed
deploys/open	rollout	deploys	open	\N	\N	\N	0	\N	2026-11-29 22:08:01.712454+00	\N	\N	\N	0	0	\N	\N	\N	\N	\N
deploys/lapsed	rollout	deploys	claimed	apikey:remediator/worker-1	worker	b3718d1c-6e2f-45e6-8267-e99f1ef67613	1	1	2026-11-29 22:08:01.713382+00	2026-11-29 22:08:01.720808+00	2026-11-29 22:08:02.720808+00	2026-11-29 22:08:02.720808+00	0	1	apikey:remediator/worker-1	worker	2026-11-29 22:08:01.720808+00	\N	\N
deploys/lapsed-taken-over	rollout	deploys	claimed	apikey:remediator/worker-2	worker	cdfef6be-5b50-48db-8f9b-826dfab6b8b6	2	1	2026-11-29 22:08:01.71348+00	2026-11-29 22:08:02.848123+00	2026-11-29 22:08:03.848123+00	2026-11-29 22:08:03.848123+00	0	2	apikey:remediator/worker-2	worker	2026-11-29 22:08:02.848123+00	\N	taken_over
deploys/completed	rollout	deploys	completed	\N	\N	\N	2	\N	2026-11-29 22:08:01.713575+00	\N	\N	\N	1	3	apikey:remediator/worker-2	worker	2026-11-29 22:08:02.909673+00	\N	completed
deploys/reopened	rollout	deploys	open	\N	\N	\N	2	\N	2026-11-29 22:08:02.924228+00	\N	\N	\N	2	4	apikey:remediator/worker-1	worker	2026-11-29 22:08:02.924228+00	not quite	reopened
deploys/released	rollout	deploys	open	\N	\N	\N	1	\N	2026-11-29 22:08:02.940055+00	\N	\N	\N	0	2	apikey:remediator/worker-1	worker	2026-11-29 22:08:02.940055+00	lunch	released
deploys/forced	rollout	deploys	open	\N	\N	\N	1	\N	2026-11-29 22:08:02.956181+00	\N	\N	\N	0	2	apikey:diagnoser	owner	2026-11-29 22:08:02.956181+00	the worker is stuck	force_released
deploys/hand-granted	rollout	deploys	claimed	apikey:remediator/worker-3	\N	d0183a25-108f-40f7-a257-57f5c1abdf59	1	\N	2026-11-29 22:08:01.713975+00	2026-11-29 22:08:02.960447+00	2090-01-01 00:00:00+00	2090-01-01 00:00:00+00	0	1	pg:kslate	\N	2026-11-29 22:08:02.960447+00	\N	\N
deploys/taken-over	rollout	deploys	claimed	apikey:remediator/worker-2	worker	bedad8a4-76b8-482c-9af9-c5bbef5606f1	2	30000000	2026-11-29 22:08:01.713029+00	2026-11-29 22:08:02.826952+00	2087-11-12 03:28:02.826952+00	2027-11-12 03:28:02.826952+00	0	2	apikey:remediator/worker-2	worker	2026-11-29 22:08:02.826952+00	\N	taken_over
deploys/again	rollout	deploys	claimed	apikey:remediator/worker-1	worker	a6cb8cc2-9d3e-40e2-8e6f-c2750e7773bd	2	30000000	2026-11-29 22:08:01.71328+00	2026-11-29 22:08:02.855818+00	2087-11-12 03:28:02.855818+00	2027-11-12 03:28:02.855818+00	0	2	apikey:remediator/worker-1	worker	2026-11-29 22:08:02.855818+00	\N	lapsed
deploys/reattached	rollout	deploys	claimed	apikey:remediator/worker-2	worker	cc72f682-cc3d-4ab6-91d9-b98ab1de4384	3	30000000	2026-11-29 22:08:01.713169+00	2026-11-29 22:08:02.863814+00	2087-11-12 03:28:02.863814+00	2027-11-12 03:28:02.863814+00	0	3	apikey:remediator/worker-2	worker	2026-11-29 22:08:02.863814+00	\N	reattached
deploys/live	rollout	deploys	claimed	apikey:remediator/worker-2	worker	42472831-ae83-45e4-b93f-889e19f0ae68	1	31536000	2026-11-29 22:08:01.712799+00	2026-11-29 22:08:02.871833+00	2087-11-29 22:08:02.876565+00	2027-11-12 03:28:02.871833+00	0	1	apikey:remediator/worker-2	worker	2026-11-29 22:08:02.871833+00	\N	\N
deploys/hand-renewed	rollout	deploys	claimed	apikey:remediator/worker-2	worker	c1df7f3e-7d23-46b2-b80a-2eb03cd76e3e	2	30000000	2026-11-29 22:08:01.714135+00	2026-11-29 22:08:02.828133+00	2151-01-01 00:00:00+00	2027-11-12 03:28:02.828133+00	0	3	pg:kslate	\N	2026-11-29 22:08:02.972307+00	\N	taken_over
deploys/twice	rollout	deploys	claimed	apikey:remediator/worker-1	worker	e756aad3-340a-499e-91dc-45b81105850c	3	30000000	2026-11-29 22:08:01.7143+00	2026-11-29 22:08:04.078581+00	2087-11-12 03:28:04.078581+00	2027-11-12 03:28:04.078581+00	0	3	apikey:remediator/worker-1	worker	2026-11-29 22:08:04.078581+00	\N	taken_over
\.


--
-- Data for Name: class; Type: TABLE DATA; Schema: kslate; Owner: kslate_owner
--

COPY kslate.class (class, version, source, definition, applied_by, applied_at) FROM stdin;
incidents	1	# Incidents, worked by two agents that do not trust each other's memory.\n#\n# The diagnoser opens a record, writes what it believes (hypotheses) and what should be done (planned_action, always\n# with its reason). The remediator claims the remediation under a lease, does one step after the other, and notes each\n# in actions_taken. Its checkpoint tells the next worker where it was: `resolved` is held back until there is one.\n#\n# `apikey:diagnoser/*` is every further worker of that name (apikey:diagnoser/worker-1, …); pg: are database roles.\nclass: incidents\ndescription: Incidents worked by a diagnoser and a remediator.\nroles:\n  diagnoser:  [apikey:diagnoser, "apikey:diagnoser/*", pg:diagnoser, "pg:diagnoser/*"]\n  remediator: [apikey:remediator, "apikey:remediator/*", pg:remediator, "pg:remediator/*"]\ncreate: [diagnoser]\nfields:\n  status:         { mode: cas, write: [diagnoser, remediator], values: [open, mitigating, resolved], initial: open }\n  hypotheses:     { mode: cas, write: [diagnoser] }\n  planned_action: { mode: cas, write: [diagnoser], evidence: required }\n  actions_taken:  { mode: append, write: [remediator] }\n  remediation:    { mode: task, write: [remediator], lease: { default_seconds: 60, max_seconds: 3600 } }\ncheckpoint:\n  required: [remediator]\n  sections: [goal, decisions, progress, open_questions]\n  max_bytes: 262144\n	{"roles": {"diagnoser": ["apikey:diagnoser", "apikey:diagnoser/*", "pg:diagnoser", "pg:diagnoser/*"], "remediator": ["apikey:remediator", "apikey:remediator/*", "pg:remediator", "pg:remediator/*"]}, "create": ["diagnoser"], "fields": {"status": {"mode": "cas", "read": ["diagnoser", "remediator"], "write": ["diagnoser", "remediator"], "values": ["open", "mitigating", "resolved"], "initial": "open", "evidence": "optional"}, "hypotheses": {"mode": "cas", "read": ["diagnoser", "remediator"], "write": ["diagnoser"], "evidence": "optional"}, "remediation": {"mode": "task", "read": ["diagnoser", "remediator"], "lease": {"max_seconds": 3600, "default_seconds": 60}, "write": ["remediator"], "evidence": "optional"}, "actions_taken": {"mode": "append", "read": ["diagnoser", "remediator"], "write": ["remediator"], "evidence": "optional"}, "planned_action": {"mode": "cas", "read": ["diagnoser", "remediator"], "write": ["diagnoser"], "evidence": "required"}}, "checkpoint": {"required": ["remediator"], "sections": ["goal", "decisions", "progress", "open_questions"], "max_bytes": 262144}}	pg:kslate	2026-11-29 22:08:01.373342+00
migrations	1	# Data migrations: a table is moved to a new shape, batch by batch, by agents that may die between two batches.\n#\n# The planner writes the plan, the migrator works it under a lease and notes each batch, the verifier compares old and\n# new and says so. An operator (a person, a database role) watches, and may take the work out of a stuck agent's hands.\n# This class shows every key a definition can have; README.md beside it explains them.\nclass: migrations\ndescription: Data migrations that are planned, moved in batches and verified.\n\nroles:\n  planner:  [apikey:planner, "apikey:planner/*"]\n  migrator: [apikey:migrator, "apikey:migrator/*"]\n  verifier: [apikey:verifier, "apikey:verifier/*"]\n  operator: [apikey:operator, pg:migration_operator]\n\ncreate: [planner, operator]\n\nfields:\n  status:\n    description: Where the migration stands; resolved only when the migrator has left a checkpoint.\n    mode: cas\n    write: [planner, verifier, operator]\n    values: [planned, moving, verifying, resolved, abandoned]\n    initial: planned\n    evidence: required\n\n  plan:\n    description: What is moved, from where to where, in batches of which size.\n    mode: cas\n    write: [planner]\n    evidence: required\n    schema:\n      type: object\n      required: [source, target, key, batch_rows]\n      additionalProperties: false\n      properties:\n        source:     { type: string, pattern: "^[a-z_][a-z0-9_]*\\\\.[a-z_][a-z0-9_]*$" }\n        target:     { type: string, pattern: "^[a-z_][a-z0-9_]*\\\\.[a-z_][a-z0-9_]*$" }\n        key:        { type: string, minLength: 1 }\n        batch_rows: { type: integer, minimum: 1, maximum: 100000 }\n        transform:  { type: string }\n\n  cursor:\n    description: The last key that was moved; a takeover goes on behind it. Only the holder of the move writes it.\n    mode: cas\n    write: [migrator]\n    requires_claim: move\n    initial: { after: null, rows: 0 }\n    schema:\n      type: object\n      required: [after, rows]\n      properties:\n        after: { type: [string, integer, "null"] }\n        rows:  { type: integer, minimum: 0 }\n\n  batches:\n    description: One entry for each batch that was moved.\n    mode: append\n    write: [migrator]\n    requires_claim: move\n    schema:\n      type: object\n      required: [first, last, rows]\n      properties:\n        first: { type: [string, integer] }\n        last:  { type: [string, integer] }\n        rows:  { type: integer, minimum: 1 }\n\n  rate_limit:\n    description: Rows a second at most; whoever set it last is right.\n    mode: lww\n    write: [operator, migrator]\n    initial: 500\n    schema: { type: integer, minimum: 1 }\n\n  credentials_hint:\n    description: Where the migrator finds its credentials (never the credentials); of no concern to others.\n    mode: lww\n    write: [operator]\n    read: [operator, migrator]\n\n  findings:\n    description: What does not match between old and new.\n    mode: append\n    write: [verifier]\n    evidence: required\n\n  move:\n    description: The right to move rows. A batch takes minutes, so the lease does too.\n    mode: task\n    write: [migrator]\n    lease: { default_seconds: 300, max_seconds: 7200 }\n    override: [operator]\n\n  verification:\n    description: The right to verify; its result is the verdict.\n    mode: task\n    write: [verifier]\n    values: [same, differs]\n    evidence: required\n    lease: { default_seconds: 120, max_seconds: 1800 }\n    override: [operator, planner]\n\ncheckpoint:\n  required: [migrator]\n  sections: [goal, progress, next_step]\n  max_bytes: 131072\n  requires_claim: move        # a worker that lost the move can no longer overwrite its successor's account\n	{"roles": {"planner": ["apikey:planner", "apikey:planner/*"], "migrator": ["apikey:migrator", "apikey:migrator/*"], "operator": ["apikey:operator", "pg:migration_operator"], "verifier": ["apikey:verifier", "apikey:verifier/*"]}, "create": ["planner", "operator"], "fields": {"move": {"mode": "task", "read": ["planner", "migrator", "verifier", "operator"], "lease": {"max_seconds": 7200, "default_seconds": 300}, "write": ["migrator"], "evidence": "optional", "override": ["operator"], "description": "The right to move rows. A batch takes minutes, so the lease does too."}, "plan": {"mode": "cas", "read": ["planner", "migrator", "verifier", "operator"], "write": ["planner"], "schema": {"type": "object", "required": ["source", "target", "key", "batch_rows"], "properties": {"key": {"type": "string", "minLength": 1}, "source": {"type": "string", "pattern": "^[a-z_][a-z0-9_]*\\\\.[a-z_][a-z0-9_]*$"}, "target": {"type": "string", "pattern": "^[a-z_][a-z0-9_]*\\\\.[a-z_][a-z0-9_]*$"}, "transform": {"type": "string"}, "batch_rows": {"type": "integer", "maximum": 100000, "minimum": 1}}, "additionalProperties": false}, "evidence": "required", "description": "What is moved, from where to where, in batches of which size."}, "cursor": {"mode": "cas", "read": ["planner", "migrator", "verifier", "operator"], "write": ["migrator"], "schema": {"type": "object", "required": ["after", "rows"], "properties": {"rows": {"type": "integer", "minimum": 0}, "after": {"type": ["string", "integer", "null"]}}}, "initial": {"rows": 0, "after": null}, "evidence": "optional", "description": "The last key that was moved; a takeover goes on behind it. Only the holder of the move writes it.", "requires_claim": "move"}, "status": {"mode": "cas", "read": ["planner", "migrator", "verifier", "operator"], "write": ["planner", "verifier", "operator"], "values": ["planned", "moving", "verifying", "resolved", "abandoned"], "initial": "planned", "evidence": "required", "description": "Where the migration stands; resolved only when the migrator has left a checkpoint."}, "batches": {"mode": "append", "read": ["planner", "migrator", "verifier", "operator"], "write": ["migrator"], "schema": {"type": "object", "required": ["first", "last", "rows"], "properties": {"last": {"type": ["string", "integer"]}, "rows": {"type": "integer", "minimum": 1}, "first": {"type": ["string", "integer"]}}}, "evidence": "optional", "description": "One entry for each batch that was moved.", "requires_claim": "move"}, "findings": {"mode": "append", "read": ["planner", "migrator", "verifier", "operator"], "write": ["verifier"], "evidence": "required", "description": "What does not match between old and new."}, "rate_limit": {"mode": "lww", "read": ["planner", "migrator", "verifier", "operator"], "write": ["operator", "migrator"], "schema": {"type": "integer", "minimum": 1}, "initial": 500, "evidence": "optional", "description": "Rows a second at most; whoever set it last is right."}, "verification": {"mode": "task", "read": ["planner", "migrator", "verifier", "operator"], "lease": {"max_seconds": 1800, "default_seconds": 120}, "write": ["verifier"], "values": ["same", "differs"], "evidence": "required", "override": ["operator", "planner"], "description": "The right to verify; its result is the verdict."}, "credentials_hint": {"mode": "lww", "read": ["operator", "migrator"], "write": ["operator"], "evidence": "optional", "description": "Where the migrator finds its credentials (never the credentials); of no concern to others."}}, "checkpoint": {"required": ["migrator"], "sections": ["goal", "progress", "next_step"], "max_bytes": 131072, "requires_claim": "move"}}	pg:kslate	2026-11-29 22:08:01.459212+00
deploys	1	\nclass: deploys\ndescription: Roll-outs, one worker each, for as long as it takes.\nroles:\n  owner:  [apikey:diagnoser, pg:diagnoser]\n  worker: ["apikey:remediator/*"]\ncreate: [owner]\nfields:\n  status:  { mode: lww, write: [owner, worker], initial: open }\n  plan:    { mode: cas, write: [owner], evidence: required }\n  step:    { mode: lww, write: [worker], requires_claim: rollout }\n  log:     { mode: append, write: [owner, worker] }\n  rollout: { mode: task, write: [worker], override: [owner], lease: { default_seconds: 60, max_seconds: 31536000 } }\ncheckpoint:\n  required: [worker]\n  sections: [goal, progress]\n	{"roles": {"owner": ["apikey:diagnoser", "pg:diagnoser"], "worker": ["apikey:remediator/*"]}, "create": ["owner"], "fields": {"log": {"mode": "append", "read": ["owner", "worker"], "write": ["owner", "worker"], "evidence": "optional"}, "plan": {"mode": "cas", "read": ["owner", "worker"], "write": ["owner"], "evidence": "required"}, "step": {"mode": "lww", "read": ["owner", "worker"], "write": ["worker"], "evidence": "optional", "requires_claim": "rollout"}, "status": {"mode": "lww", "read": ["owner", "worker"], "write": ["owner", "worker"], "initial": "open", "evidence": "optional"}, "rollout": {"mode": "task", "read": ["owner", "worker"], "lease": {"max_seconds": 31536000, "default_seconds": 60}, "write": ["worker"], "evidence": "optional", "override": ["owner"]}}, "checkpoint": {"required": ["worker"], "sections": ["goal", "progress"], "max_bytes": 262144}}	pg:kslate	2026-11-29 22:08:01.589464+00
incidents	2	# Incidents, worked by both, two agents that do not trust each other's memory.\n#\n# The diagnoser opens a record, writes what it believes (hypotheses) and what should be done (planned_action, always\n# with its reason). The remediator claims the remediation under a lease, does one step after the other, and notes each\n# in actions_taken. Its checkpoint tells the next worker where it was: `resolved` is held back until there is one.\n#\n# `apikey:diagnoser/*` is every further worker of that name (apikey:diagnoser/worker-1, …); pg: are database roles.\nclass: incidents\ndescription: Incidents worked by both, a diagnoser and a remediator.\nroles:\n  diagnoser:  [apikey:diagnoser, "apikey:diagnoser/*", pg:diagnoser, "pg:diagnoser/*"]\n  remediator: [apikey:remediator, "apikey:remediator/*", pg:remediator, "pg:remediator/*"]\ncreate: [diagnoser]\nfields:\n  status:         { mode: cas, write: [diagnoser, remediator], values: [open, mitigating, resolved], initial: open }\n  hypotheses:     { mode: cas, write: [diagnoser] }\n  planned_action: { mode: cas, write: [diagnoser], evidence: required }\n  actions_taken:  { mode: append, write: [remediator] }\n  remediation:    { mode: task, write: [remediator], lease: { default_seconds: 60, max_seconds: 3600 } }\ncheckpoint:\n  required: [remediator]\n  sections: [goal, decisions, progress, open_questions]\n  max_bytes: 262144\n	{"roles": {"diagnoser": ["apikey:diagnoser", "apikey:diagnoser/*", "pg:diagnoser", "pg:diagnoser/*"], "remediator": ["apikey:remediator", "apikey:remediator/*", "pg:remediator", "pg:remediator/*"]}, "create": ["diagnoser"], "fields": {"status": {"mode": "cas", "read": ["diagnoser", "remediator"], "write": ["diagnoser", "remediator"], "values": ["open", "mitigating", "resolved"], "initial": "open", "evidence": "optional"}, "hypotheses": {"mode": "cas", "read": ["diagnoser", "remediator"], "write": ["diagnoser"], "evidence": "optional"}, "remediation": {"mode": "task", "read": ["diagnoser", "remediator"], "lease": {"max_seconds": 3600, "default_seconds": 60}, "write": ["remediator"], "evidence": "optional"}, "actions_taken": {"mode": "append", "read": ["diagnoser", "remediator"], "write": ["remediator"], "evidence": "optional"}, "planned_action": {"mode": "cas", "read": ["diagnoser", "remediator"], "write": ["diagnoser"], "evidence": "required"}}, "checkpoint": {"required": ["remediator"], "sections": ["goal", "decisions", "progress", "open_questions"], "max_bytes": 262144}}	pg:kslate	2026-11-29 22:08:01.708619+00
\.


--
-- Data for Name: field; Type: TABLE DATA; Schema: kslate; Owner: kslate_owner
--

COPY kslate.field (record, field, value, version, author, role, evidence, record_version, changed_at) FROM stdin;
incidents/inc-1	status	"open"	1	apikey:diagnoser	diagnoser	\N	0	2026-11-29 22:08:01.61021+00
incidents/inc-4	status	"open"	1	apikey:diagnoser	diagnoser	\N	0	2026-11-29 22:08:01.618765+00
incidents/inc-5	status	"mitigating"	1	apikey:diagnoser	diagnoser	paged	0	2026-11-29 22:08:01.62413+00
incidents/inc-5	hypotheses	{"first": [1, null]}	1	apikey:diagnoser	diagnoser	paged	0	2026-11-29 22:08:01.62413+00
incidents/inc-1	hypotheses	"replica lag"	2	apikey:diagnoser	diagnoser	hypotheses@1	2	2026-11-29 22:08:01.635929+00
incidents/inc-2	status	"resolved"	3	apikey:diagnoser	diagnoser	remediation@1	5	2026-11-29 22:08:01.699885+00
incidents/inc-1	planned_action	"plan 2"	3	apikey:diagnoser	diagnoser	hypotheses@2	5	2026-11-29 22:08:01.640925+00
incidents/inc-2	hypotheses	"disk"	1	apikey:diagnoser	diagnoser	\N	1	2026-11-29 22:08:01.644151+00
incidents/inc-3	status	"mitigating"	2	pg:kslate	\N	by hand	1	2026-11-29 22:08:01.704152+00
incidents/inc-1	actions_taken	{"cost": 1.10, "step": 25}	25	apikey:remediator/worker-1	remediator	planned_action@3	30	2026-11-29 22:08:01.660251+00
incidents/inc-2	remediation	{"done": true}	1	apikey:remediator/worker-2	remediator	looked	4	2026-11-29 22:08:01.688116+00
deploys/open	status	"open"	1	apikey:diagnoser	owner	\N	0	2026-11-29 22:08:01.712454+00
deploys/live	status	"open"	1	apikey:diagnoser	owner	\N	0	2026-11-29 22:08:01.712799+00
deploys/taken-over	status	"open"	1	apikey:diagnoser	owner	\N	0	2026-11-29 22:08:01.713029+00
deploys/reattached	status	"open"	1	apikey:diagnoser	owner	\N	0	2026-11-29 22:08:01.713169+00
deploys/again	status	"open"	1	apikey:diagnoser	owner	\N	0	2026-11-29 22:08:01.71328+00
deploys/lapsed	status	"open"	1	apikey:diagnoser	owner	\N	0	2026-11-29 22:08:01.713382+00
deploys/lapsed-taken-over	status	"open"	1	apikey:diagnoser	owner	\N	0	2026-11-29 22:08:01.71348+00
deploys/completed	status	"open"	1	apikey:diagnoser	owner	\N	0	2026-11-29 22:08:01.713575+00
deploys/reopened	status	"open"	1	apikey:diagnoser	owner	\N	0	2026-11-29 22:08:01.713669+00
deploys/released	status	"open"	1	apikey:diagnoser	owner	\N	0	2026-11-29 22:08:01.713759+00
deploys/forced	status	"open"	1	apikey:diagnoser	owner	\N	0	2026-11-29 22:08:01.713852+00
deploys/hand-granted	status	"open"	1	apikey:diagnoser	owner	\N	0	2026-11-29 22:08:01.713975+00
deploys/hand-renewed	status	"open"	1	apikey:diagnoser	owner	\N	0	2026-11-29 22:08:01.714135+00
deploys/live	step	{"percent": 10}	1	apikey:remediator/worker-2	worker	\N	2	2026-11-29 22:08:02.885973+00
deploys/taken-over	log	"step 3"	3	apikey:remediator/worker-2	worker	\N	5	2026-11-29 22:08:02.896638+00
deploys/completed	rollout	"out"	1	apikey:remediator/worker-2	worker	\N	3	2026-11-29 22:08:02.909673+00
deploys/reopened	rollout	\N	2	apikey:remediator/worker-1	worker	\N	4	2026-11-29 22:08:02.924228+00
deploys/twice	status	"half way"	2	apikey:diagnoser	owner	\N	4	2026-11-29 22:08:04.084158+00
\.


--
-- Data for Name: history; Type: TABLE DATA; Schema: kslate; Owner: kslate_owner
--

COPY kslate.history (record, record_version, op, field, version, value, author, role, evidence, changed_at, epoch, took_over_from, reason, login) FROM stdin;
incidents/inc-1	0	create	\N	\N	{"status": "open"}	apikey:diagnoser	diagnoser	\N	2026-11-29 22:08:01.61021+00	\N	\N	\N	kslate
incidents/inc-2	0	create	\N	\N	{"status": "open"}	apikey:diagnoser	diagnoser	\N	2026-11-29 22:08:01.618249+00	\N	\N	\N	kslate
incidents/inc-3	0	create	\N	\N	{"status": "open"}	apikey:diagnoser	diagnoser	\N	2026-11-29 22:08:01.61858+00	\N	\N	\N	kslate
incidents/inc-4	0	create	\N	\N	{"status": "open"}	apikey:diagnoser	diagnoser	\N	2026-11-29 22:08:01.618765+00	\N	\N	\N	kslate
incidents/inc-5	0	create	\N	\N	{"status": "mitigating", "hypotheses": {"first": [1, null]}}	apikey:diagnoser	diagnoser	paged	2026-11-29 22:08:01.62413+00	\N	\N	\N	kslate
incidents/inc-1	1	write	hypotheses	1	{"n": 123456789012345678901234567890.10, "s": "\\\\N tab\\t quote' é \\\\u0000", "deep": {"a": [[], {}]}}	apikey:diagnoser	diagnoser	line one\nline two	2026-11-29 22:08:01.627941+00	\N	\N	\N	kslate
incidents/inc-1	2	write	hypotheses	2	"replica lag"	apikey:diagnoser	diagnoser	hypotheses@1	2026-11-29 22:08:01.635929+00	\N	\N	\N	kslate
incidents/inc-1	3	write	planned_action	1	"plan 0"	apikey:diagnoser	diagnoser	hypotheses@2	2026-11-29 22:08:01.640686+00	\N	\N	\N	kslate
incidents/inc-1	4	write	planned_action	2	"plan 1"	apikey:diagnoser	diagnoser	hypotheses@2	2026-11-29 22:08:01.640845+00	\N	\N	\N	kslate
incidents/inc-1	5	write	planned_action	3	"plan 2"	apikey:diagnoser	diagnoser	hypotheses@2	2026-11-29 22:08:01.640925+00	\N	\N	\N	kslate
incidents/inc-2	1	write	hypotheses	1	"disk"	apikey:diagnoser	diagnoser	\N	2026-11-29 22:08:01.644151+00	\N	\N	\N	kslate
incidents/inc-2	2	write	status	2	"mitigating"	apikey:diagnoser	diagnoser	paged	2026-11-29 22:08:01.644151+00	\N	\N	\N	kslate
incidents/inc-1	6	append	actions_taken	1	{"cost": 1.10, "step": 1}	apikey:remediator/worker-1	remediator	planned_action@3	2026-11-29 22:08:01.652864+00	\N	\N	\N	kslate
incidents/inc-1	7	append	actions_taken	2	{"cost": 1.10, "step": 2}	apikey:remediator/worker-1	remediator	planned_action@3	2026-11-29 22:08:01.653479+00	\N	\N	\N	kslate
incidents/inc-1	8	append	actions_taken	3	{"cost": 1.10, "step": 3}	apikey:remediator/worker-1	remediator	planned_action@3	2026-11-29 22:08:01.653655+00	\N	\N	\N	kslate
incidents/inc-1	9	append	actions_taken	4	{"cost": 1.10, "step": 4}	apikey:remediator/worker-1	remediator	planned_action@3	2026-11-29 22:08:01.653766+00	\N	\N	\N	kslate
incidents/inc-1	10	append	actions_taken	5	{"cost": 1.10, "step": 5}	apikey:remediator/worker-1	remediator	planned_action@3	2026-11-29 22:08:01.653886+00	\N	\N	\N	kslate
incidents/inc-1	11	append	actions_taken	6	{"cost": 1.10, "step": 6}	apikey:remediator/worker-1	remediator	planned_action@3	2026-11-29 22:08:01.654008+00	\N	\N	\N	kslate
incidents/inc-1	12	append	actions_taken	7	{"cost": 1.10, "step": 7}	apikey:remediator/worker-1	remediator	planned_action@3	2026-11-29 22:08:01.654101+00	\N	\N	\N	kslate
incidents/inc-1	13	append	actions_taken	8	{"cost": 1.10, "step": 8}	apikey:remediator/worker-1	remediator	planned_action@3	2026-11-29 22:08:01.654189+00	\N	\N	\N	kslate
incidents/inc-1	14	append	actions_taken	9	{"cost": 1.10, "step": 9}	apikey:remediator/worker-1	remediator	planned_action@3	2026-11-29 22:08:01.654294+00	\N	\N	\N	kslate
incidents/inc-1	15	append	actions_taken	10	{"cost": 1.10, "step": 10}	apikey:remediator/worker-1	remediator	planned_action@3	2026-11-29 22:08:01.654384+00	\N	\N	\N	kslate
incidents/inc-1	16	append	actions_taken	11	{"cost": 1.10, "step": 11}	apikey:remediator/worker-1	remediator	planned_action@3	2026-11-29 22:08:01.654471+00	\N	\N	\N	kslate
incidents/inc-1	17	append	actions_taken	12	{"cost": 1.10, "step": 12}	apikey:remediator/worker-1	remediator	planned_action@3	2026-11-29 22:08:01.65457+00	\N	\N	\N	kslate
incidents/inc-1	18	append	actions_taken	13	{"cost": 1.10, "step": 13}	apikey:remediator/worker-1	remediator	planned_action@3	2026-11-29 22:08:01.654656+00	\N	\N	\N	kslate
incidents/inc-1	19	append	actions_taken	14	{"cost": 1.10, "step": 14}	apikey:remediator/worker-1	remediator	planned_action@3	2026-11-29 22:08:01.654745+00	\N	\N	\N	kslate
incidents/inc-1	20	append	actions_taken	15	{"cost": 1.10, "step": 15}	apikey:remediator/worker-1	remediator	planned_action@3	2026-11-29 22:08:01.654829+00	\N	\N	\N	kslate
incidents/inc-1	21	append	actions_taken	16	{"cost": 1.10, "step": 16}	apikey:remediator/worker-1	remediator	planned_action@3	2026-11-29 22:08:01.654914+00	\N	\N	\N	kslate
incidents/inc-1	22	append	actions_taken	17	{"cost": 1.10, "step": 17}	apikey:remediator/worker-1	remediator	planned_action@3	2026-11-29 22:08:01.655041+00	\N	\N	\N	kslate
incidents/inc-1	23	append	actions_taken	18	{"cost": 1.10, "step": 18}	apikey:remediator/worker-1	remediator	planned_action@3	2026-11-29 22:08:01.655131+00	\N	\N	\N	kslate
incidents/inc-1	24	append	actions_taken	19	{"cost": 1.10, "step": 19}	apikey:remediator/worker-1	remediator	planned_action@3	2026-11-29 22:08:01.655214+00	\N	\N	\N	kslate
incidents/inc-1	25	append	actions_taken	20	{"cost": 1.10, "step": 20}	apikey:remediator/worker-1	remediator	planned_action@3	2026-11-29 22:08:01.655301+00	\N	\N	\N	kslate
incidents/inc-1	26	append	actions_taken	21	{"cost": 1.10, "step": 21}	apikey:remediator/worker-1	remediator	planned_action@3	2026-11-29 22:08:01.659607+00	\N	\N	\N	kslate
incidents/inc-1	27	append	actions_taken	22	{"cost": 1.10, "step": 22}	apikey:remediator/worker-1	remediator	planned_action@3	2026-11-29 22:08:01.659864+00	\N	\N	\N	kslate
incidents/inc-1	28	append	actions_taken	23	{"cost": 1.10, "step": 23}	apikey:remediator/worker-1	remediator	planned_action@3	2026-11-29 22:08:01.660034+00	\N	\N	\N	kslate
incidents/inc-1	29	append	actions_taken	24	{"cost": 1.10, "step": 24}	apikey:remediator/worker-1	remediator	planned_action@3	2026-11-29 22:08:01.66015+00	\N	\N	\N	kslate
incidents/inc-1	30	append	actions_taken	25	{"cost": 1.10, "step": 25}	apikey:remediator/worker-1	remediator	planned_action@3	2026-11-29 22:08:01.660251+00	\N	\N	\N	kslate
incidents/inc-1	31	claim	remediation	\N	\N	apikey:remediator/worker-1	remediator	\N	2026-11-29 22:08:01.668447+00	1	\N	\N	kslate
incidents/inc-1	32	release	remediation	\N	\N	apikey:remediator/worker-1	remediator	\N	2026-11-29 22:08:01.675888+00	1	\N	shift ends	kslate
incidents/inc-2	3	claim	remediation	\N	\N	apikey:remediator/worker-2	remediator	\N	2026-11-29 22:08:01.684031+00	1	\N	\N	kslate
incidents/inc-2	4	complete	remediation	1	{"done": true}	apikey:remediator/worker-2	remediator	looked	2026-11-29 22:08:01.688116+00	1	\N	\N	kslate
incidents/inc-2	5	write	status	3	"resolved"	apikey:diagnoser	diagnoser	remediation@1	2026-11-29 22:08:01.699885+00	\N	\N	\N	kslate
incidents/inc-3	1	write	status	2	"mitigating"	pg:kslate	\N	by hand	2026-11-29 22:08:01.704152+00	\N	\N	\N	kslate
deploys/open	0	create	\N	\N	{"status": "open"}	apikey:diagnoser	owner	\N	2026-11-29 22:08:01.712454+00	\N	\N	\N	kslate
deploys/live	0	create	\N	\N	{"status": "open"}	apikey:diagnoser	owner	\N	2026-11-29 22:08:01.712799+00	\N	\N	\N	kslate
deploys/taken-over	0	create	\N	\N	{"status": "open"}	apikey:diagnoser	owner	\N	2026-11-29 22:08:01.713029+00	\N	\N	\N	kslate
deploys/reattached	0	create	\N	\N	{"status": "open"}	apikey:diagnoser	owner	\N	2026-11-29 22:08:01.713169+00	\N	\N	\N	kslate
deploys/again	0	create	\N	\N	{"status": "open"}	apikey:diagnoser	owner	\N	2026-11-29 22:08:01.71328+00	\N	\N	\N	kslate
deploys/lapsed	0	create	\N	\N	{"status": "open"}	apikey:diagnoser	owner	\N	2026-11-29 22:08:01.713382+00	\N	\N	\N	kslate
deploys/lapsed-taken-over	0	create	\N	\N	{"status": "open"}	apikey:diagnoser	owner	\N	2026-11-29 22:08:01.71348+00	\N	\N	\N	kslate
deploys/completed	0	create	\N	\N	{"status": "open"}	apikey:diagnoser	owner	\N	2026-11-29 22:08:01.713575+00	\N	\N	\N	kslate
deploys/reopened	0	create	\N	\N	{"status": "open"}	apikey:diagnoser	owner	\N	2026-11-29 22:08:01.713669+00	\N	\N	\N	kslate
deploys/released	0	create	\N	\N	{"status": "open"}	apikey:diagnoser	owner	\N	2026-11-29 22:08:01.713759+00	\N	\N	\N	kslate
deploys/forced	0	create	\N	\N	{"status": "open"}	apikey:diagnoser	owner	\N	2026-11-29 22:08:01.713852+00	\N	\N	\N	kslate
deploys/hand-granted	0	create	\N	\N	{"status": "open"}	apikey:diagnoser	owner	\N	2026-11-29 22:08:01.713975+00	\N	\N	\N	kslate
deploys/hand-renewed	0	create	\N	\N	{"status": "open"}	apikey:diagnoser	owner	\N	2026-11-29 22:08:01.714135+00	\N	\N	\N	kslate
deploys/twice	0	create	\N	\N	{"status": "open"}	apikey:diagnoser	owner	\N	2026-11-29 22:08:01.7143+00	\N	\N	\N	kslate
deploys/taken-over	1	claim	rollout	\N	\N	apikey:remediator/worker-1	worker	\N	2026-11-29 22:08:01.720178+00	1	\N	\N	kslate
deploys/reattached	1	claim	rollout	\N	\N	apikey:remediator/worker-1	worker	\N	2026-11-29 22:08:01.7205+00	1	\N	\N	kslate
deploys/again	1	claim	rollout	\N	\N	apikey:remediator/worker-1	worker	\N	2026-11-29 22:08:01.720693+00	1	\N	\N	kslate
deploys/lapsed	1	claim	rollout	\N	\N	apikey:remediator/worker-1	worker	\N	2026-11-29 22:08:01.720808+00	1	\N	\N	kslate
deploys/lapsed-taken-over	1	claim	rollout	\N	\N	apikey:remediator/worker-1	worker	\N	2026-11-29 22:08:01.720902+00	1	\N	\N	kslate
deploys/completed	1	claim	rollout	\N	\N	apikey:remediator/worker-1	worker	\N	2026-11-29 22:08:01.721028+00	1	\N	\N	kslate
deploys/reopened	1	claim	rollout	\N	\N	apikey:remediator/worker-1	worker	\N	2026-11-29 22:08:01.721116+00	1	\N	\N	kslate
deploys/hand-renewed	1	claim	rollout	\N	\N	apikey:remediator/worker-1	worker	\N	2026-11-29 22:08:01.72121+00	1	\N	\N	kslate
deploys/twice	1	claim	rollout	\N	\N	apikey:remediator/worker-1	worker	\N	2026-11-29 22:08:01.721296+00	1	\N	\N	kslate
deploys/taken-over	2	takeover	rollout	\N	\N	apikey:remediator/worker-2	worker	\N	2026-11-29 22:08:02.826952+00	2	apikey:remediator/worker-1	\N	kslate
deploys/reattached	2	takeover	rollout	\N	\N	apikey:remediator/worker-2	worker	\N	2026-11-29 22:08:02.827409+00	2	apikey:remediator/worker-1	\N	kslate
deploys/completed	2	takeover	rollout	\N	\N	apikey:remediator/worker-2	worker	\N	2026-11-29 22:08:02.827678+00	2	apikey:remediator/worker-1	\N	kslate
deploys/reopened	2	takeover	rollout	\N	\N	apikey:remediator/worker-2	worker	\N	2026-11-29 22:08:02.827902+00	2	apikey:remediator/worker-1	\N	kslate
deploys/hand-renewed	2	takeover	rollout	\N	\N	apikey:remediator/worker-2	worker	\N	2026-11-29 22:08:02.828133+00	2	apikey:remediator/worker-1	\N	kslate
deploys/lapsed-taken-over	2	takeover	rollout	\N	\N	apikey:remediator/worker-2	worker	\N	2026-11-29 22:08:02.848123+00	2	apikey:remediator/worker-1	\N	kslate
deploys/twice	2	takeover	rollout	\N	\N	apikey:remediator/worker-2	worker	\N	2026-11-29 22:08:02.848388+00	2	apikey:remediator/worker-1	\N	kslate
deploys/again	2	claim	rollout	\N	\N	apikey:remediator/worker-1	worker	\N	2026-11-29 22:08:02.855818+00	2	\N	\N	kslate
deploys/reattached	3	reattach	rollout	\N	\N	apikey:remediator/worker-2	worker	\N	2026-11-29 22:08:02.863814+00	3	\N	\N	kslate
deploys/live	1	claim	rollout	\N	\N	apikey:remediator/worker-2	worker	\N	2026-11-29 22:08:02.871833+00	1	\N	\N	kslate
deploys/live	2	write	step	1	{"percent": 10}	apikey:remediator/worker-2	worker	\N	2026-11-29 22:08:02.885973+00	\N	\N	\N	kslate
deploys/taken-over	3	append	log	1	"step 1"	apikey:remediator/worker-2	worker	\N	2026-11-29 22:08:02.896209+00	\N	\N	\N	kslate
deploys/taken-over	4	append	log	2	"step 2"	apikey:remediator/worker-2	worker	\N	2026-11-29 22:08:02.89647+00	\N	\N	\N	kslate
deploys/taken-over	5	append	log	3	"step 3"	apikey:remediator/worker-2	worker	\N	2026-11-29 22:08:02.896638+00	\N	\N	\N	kslate
deploys/completed	3	complete	rollout	1	"out"	apikey:remediator/worker-2	worker	\N	2026-11-29 22:08:02.909673+00	2	\N	\N	kslate
deploys/reopened	3	complete	rollout	1	"half"	apikey:remediator/worker-2	worker	\N	2026-11-29 22:08:02.916294+00	2	\N	\N	kslate
deploys/reopened	4	reopen	rollout	2	\N	apikey:remediator/worker-1	worker	\N	2026-11-29 22:08:02.924228+00	2	\N	not quite	kslate
deploys/released	1	claim	rollout	\N	\N	apikey:remediator/worker-1	worker	\N	2026-11-29 22:08:02.931858+00	1	\N	\N	kslate
deploys/released	2	release	rollout	\N	\N	apikey:remediator/worker-1	worker	\N	2026-11-29 22:08:02.940055+00	1	\N	lunch	kslate
deploys/forced	1	claim	rollout	\N	\N	apikey:remediator/worker-1	worker	\N	2026-11-29 22:08:02.944286+00	1	\N	\N	kslate
deploys/forced	2	force_release	rollout	\N	\N	apikey:diagnoser	owner	\N	2026-11-29 22:08:02.956181+00	1	\N	the worker is stuck	kslate
deploys/hand-granted	1	claim	rollout	\N	\N	pg:kslate	\N	\N	2026-11-29 22:08:02.960447+00	1	\N	\N	kslate
deploys/hand-renewed	3	renew	rollout	\N	\N	pg:kslate	\N	\N	2026-11-29 22:08:02.972307+00	2	\N	\N	kslate
deploys/twice	3	takeover	rollout	\N	\N	apikey:remediator/worker-1	worker	\N	2026-11-29 22:08:04.078581+00	3	apikey:remediator/worker-2	\N	kslate
deploys/twice	4	write	status	2	"half way"	apikey:diagnoser	owner	\N	2026-11-29 22:08:04.084158+00	\N	\N	\N	kslate
\.


--
-- Data for Name: idempotency; Type: TABLE DATA; Schema: kslate; Owner: kslate_owner
--

COPY kslate.idempotency (record, identity, key, request_hash, answer, created_at) FROM stdin;
incidents/inc-1	apikey:remediator/worker-1	step-1	\\xa0177bd5ab5e1fb69bdd2bb88bbb8e917fc07e160ef2804df60bb3ffa1ab0e81	{"field":"actions_taken","version":1,"record_version":6,"role":"remediator","changed_at":"2026-11-29T22:08:01.652864+00:00"}	2026-11-29 22:08:01.653014+00
incidents/inc-1	apikey:remediator/worker-1	step-2	\\xa11cd0e50b5ac4c564689ce3541117a950ceffb5cc5c4b338ca009cb941fdc07	{"field":"actions_taken","version":2,"record_version":7,"role":"remediator","changed_at":"2026-11-29T22:08:01.653479+00:00"}	2026-11-29 22:08:01.653544+00
incidents/inc-1	apikey:remediator/worker-1	step-3	\\x23e49c4bfd1687fbc239c8fab5d240132039953580d2425a901bcfbfdb2f7c58	{"field":"actions_taken","version":3,"record_version":8,"role":"remediator","changed_at":"2026-11-29T22:08:01.653655+00:00"}	2026-11-29 22:08:01.653698+00
incidents/inc-1	apikey:remediator/worker-1	step-4	\\x4a88745199b87d464f1960e192bb809d7299424be5d3ea8094390067c8867042	{"field":"actions_taken","version":4,"record_version":9,"role":"remediator","changed_at":"2026-11-29T22:08:01.653766+00:00"}	2026-11-29 22:08:01.653802+00
incidents/inc-1	apikey:remediator/worker-1	step-5	\\x1e2adc1b7270a384df921ecf7181c54d282522adab9b3a629339ee14a4e7295e	{"field":"actions_taken","version":5,"record_version":10,"role":"remediator","changed_at":"2026-11-29T22:08:01.653886+00:00"}	2026-11-29 22:08:01.653922+00
incidents/inc-1	apikey:remediator/worker-1	step-6	\\xde946d043995ebacbdb30df5e2fec819a99ac206f2bbdeb11b817600ee4e2874	{"field":"actions_taken","version":6,"record_version":11,"role":"remediator","changed_at":"2026-11-29T22:08:01.654008+00:00"}	2026-11-29 22:08:01.654042+00
incidents/inc-1	apikey:remediator/worker-1	step-7	\\xa30ff8880564d50f0c44c21c7a872f51c1f28318c061575dc3ba72a76db782f9	{"field":"actions_taken","version":7,"record_version":12,"role":"remediator","changed_at":"2026-11-29T22:08:01.654101+00:00"}	2026-11-29 22:08:01.654133+00
incidents/inc-1	apikey:remediator/worker-1	step-8	\\x8b7e504f3330230965e1ff5885b646bc0a01cdaae5dd0e4f21a45df6f8af9443	{"field":"actions_taken","version":8,"record_version":13,"role":"remediator","changed_at":"2026-11-29T22:08:01.654189+00:00"}	2026-11-29 22:08:01.654222+00
incidents/inc-1	apikey:remediator/worker-1	step-9	\\x933a4942d8cabc3c72d173a5fc5bfec98b7f4ca5ced2570186c2875da67fb8fb	{"field":"actions_taken","version":9,"record_version":14,"role":"remediator","changed_at":"2026-11-29T22:08:01.654294+00:00"}	2026-11-29 22:08:01.654328+00
incidents/inc-1	apikey:remediator/worker-1	step-10	\\xb6b81c5416e66dc3ebf0b7f9d1a7db90e603ca116edf767c7218d86afdaf7a21	{"field":"actions_taken","version":10,"record_version":15,"role":"remediator","changed_at":"2026-11-29T22:08:01.654384+00:00"}	2026-11-29 22:08:01.654416+00
incidents/inc-1	apikey:remediator/worker-1	step-11	\\xac996b5bb683b45ce41dbd6b0b355f00ff765149f6b2fbd7719bb84a38754402	{"field":"actions_taken","version":11,"record_version":16,"role":"remediator","changed_at":"2026-11-29T22:08:01.654471+00:00"}	2026-11-29 22:08:01.654503+00
incidents/inc-1	apikey:remediator/worker-1	step-12	\\xe92a457bba8c6faf644dac6180508bd939fe44ef7119ed43ee84d4fcd4ed4de7	{"field":"actions_taken","version":12,"record_version":17,"role":"remediator","changed_at":"2026-11-29T22:08:01.65457+00:00"}	2026-11-29 22:08:01.654603+00
incidents/inc-1	apikey:remediator/worker-1	step-13	\\x1d49789dcb377cad17a25b93da5f1f1bf8b2b4503c0e1ce095a53567fb74741e	{"field":"actions_taken","version":13,"record_version":18,"role":"remediator","changed_at":"2026-11-29T22:08:01.654656+00:00"}	2026-11-29 22:08:01.65469+00
incidents/inc-1	apikey:remediator/worker-1	step-14	\\x0a1409384ba13ea1f7e2d3ca91f4f3baf7c49c277139ac535321f7e05198f1dd	{"field":"actions_taken","version":14,"record_version":19,"role":"remediator","changed_at":"2026-11-29T22:08:01.654745+00:00"}	2026-11-29 22:08:01.654776+00
incidents/inc-1	apikey:remediator/worker-1	step-15	\\x0060acb1f93cefcc337cfaf0acdfabfb89c8f82d49dd5c36912412000a7bc97f	{"field":"actions_taken","version":15,"record_version":20,"role":"remediator","changed_at":"2026-11-29T22:08:01.654829+00:00"}	2026-11-29 22:08:01.654861+00
incidents/inc-1	apikey:remediator/worker-1	step-16	\\x7376d5b3bbf28abdda2606308732e6d28d2d254e4282047ed746c7aafe53f2fe	{"field":"actions_taken","version":16,"record_version":21,"role":"remediator","changed_at":"2026-11-29T22:08:01.654914+00:00"}	2026-11-29 22:08:01.654982+00
incidents/inc-1	apikey:remediator/worker-1	step-17	\\x14433ac6a2c3e1745aec85f898e49d1a25f2d43675bd6855d0cae509ac4d5f1a	{"field":"actions_taken","version":17,"record_version":22,"role":"remediator","changed_at":"2026-11-29T22:08:01.655041+00:00"}	2026-11-29 22:08:01.655073+00
incidents/inc-1	apikey:remediator/worker-1	step-18	\\xa8e9394551ddb2676192ce6d7d0e870bd5d577301fb91ea51128fcc77cba77bd	{"field":"actions_taken","version":18,"record_version":23,"role":"remediator","changed_at":"2026-11-29T22:08:01.655131+00:00"}	2026-11-29 22:08:01.655162+00
incidents/inc-1	apikey:remediator/worker-1	step-19	\\x4ce1a120f9e4c53d88e2c10132116bcaad53a9eb00716632f2596479fd5280e0	{"field":"actions_taken","version":19,"record_version":24,"role":"remediator","changed_at":"2026-11-29T22:08:01.655214+00:00"}	2026-11-29 22:08:01.655245+00
incidents/inc-1	apikey:remediator/worker-1	step-20	\\x203e2f5893fd3c5cf9a22fb652961e527b6921c62f8885055ab5015d0b185887	{"field":"actions_taken","version":20,"record_version":25,"role":"remediator","changed_at":"2026-11-29T22:08:01.655301+00:00"}	2026-11-29 22:08:01.655332+00
incidents/inc-1	apikey:remediator/worker-1	step-21	\\x073d28ec565e98a5a27ff7d07f5113b920df07b7ef3740d115f1a268763b6838	{"field":"actions_taken","version":21,"record_version":26,"role":"remediator","changed_at":"2026-11-29T22:08:01.659607+00:00"}	2026-11-29 22:08:01.659719+00
incidents/inc-1	apikey:remediator/worker-1	step-22	\\xd5040968311d76498b25a8b01bfe172666af7daa689eee64c93e6a40956ebb06	{"field":"actions_taken","version":22,"record_version":27,"role":"remediator","changed_at":"2026-11-29T22:08:01.659864+00:00"}	2026-11-29 22:08:01.659917+00
incidents/inc-1	apikey:remediator/worker-1	step-23	\\x37c4d916b20f82901c6fae9eac5c98868d95bd867faa2d30507ad36020e1b074	{"field":"actions_taken","version":23,"record_version":28,"role":"remediator","changed_at":"2026-11-29T22:08:01.660034+00:00"}	2026-11-29 22:08:01.660078+00
incidents/inc-1	apikey:remediator/worker-1	step-24	\\x768dccf58217e8a11572dd13e4effdc19a40a70fb77dd8a70fc48154b5bee8b3	{"field":"actions_taken","version":24,"record_version":29,"role":"remediator","changed_at":"2026-11-29T22:08:01.66015+00:00"}	2026-11-29 22:08:01.660186+00
incidents/inc-1	apikey:remediator/worker-1	step-25	\\x1f801e111cef7d454519ed75c405cbd498216d4a6b893ce38adc5235ead95024	{"field":"actions_taken","version":25,"record_version":30,"role":"remediator","changed_at":"2026-11-29T22:08:01.660251+00:00"}	2026-11-29 22:08:01.660284+00
incidents/inc-1	apikey:remediator/worker-1	claim-1	\\x32c2ac410e5d3030eb0cfe0955d1d7a7971b89b85e82d3f97d2e22119145490d	{"role":"remediator","claim_id":[243,215,128,117,58,24,67,137,149,105,108,176,213,125,51,159],"epoch":1,"claimed_at":"2026-11-29T22:08:01.668447+00:00","expires_at":"2026-11-29T22:09:01.668447+00:00","lease_seconds":60,"took_over_from":null,"record_version":31}	2026-11-29 22:08:01.66889+00
\.


--
-- Data for Name: record; Type: TABLE DATA; Schema: kslate; Owner: kslate_owner
--

COPY kslate.record (record, class, key, version, created_by, created_at) FROM stdin;
incidents/inc-4	incidents	inc-4	0	apikey:diagnoser	2026-11-29 22:08:01.618765+00
incidents/inc-5	incidents	inc-5	0	apikey:diagnoser	2026-11-29 22:08:01.62413+00
deploys/lapsed-taken-over	deploys	lapsed-taken-over	2	apikey:diagnoser	2026-11-29 22:08:01.71348+00
deploys/again	deploys	again	2	apikey:diagnoser	2026-11-29 22:08:01.71328+00
deploys/reattached	deploys	reattached	3	apikey:diagnoser	2026-11-29 22:08:01.713169+00
deploys/live	deploys	live	2	apikey:diagnoser	2026-11-29 22:08:01.712799+00
deploys/taken-over	deploys	taken-over	5	apikey:diagnoser	2026-11-29 22:08:01.713029+00
deploys/completed	deploys	completed	3	apikey:diagnoser	2026-11-29 22:08:01.713575+00
deploys/reopened	deploys	reopened	4	apikey:diagnoser	2026-11-29 22:08:01.713669+00
deploys/released	deploys	released	2	apikey:diagnoser	2026-11-29 22:08:01.713759+00
deploys/forced	deploys	forced	2	apikey:diagnoser	2026-11-29 22:08:01.713852+00
deploys/hand-granted	deploys	hand-granted	1	apikey:diagnoser	2026-11-29 22:08:01.713975+00
deploys/hand-renewed	deploys	hand-renewed	3	apikey:diagnoser	2026-11-29 22:08:01.714135+00
deploys/twice	deploys	twice	4	apikey:diagnoser	2026-11-29 22:08:01.7143+00
incidents/inc-1	incidents	inc-1	32	apikey:diagnoser	2026-11-29 22:08:01.61021+00
incidents/inc-2	incidents	inc-2	5	apikey:diagnoser	2026-11-29 22:08:01.618249+00
incidents/inc-3	incidents	inc-3	1	apikey:diagnoser	2026-11-29 22:08:01.61858+00
deploys/open	deploys	open	0	apikey:diagnoser	2026-11-29 22:08:01.712454+00
deploys/lapsed	deploys	lapsed	1	apikey:diagnoser	2026-11-29 22:08:01.713382+00
\.


--
-- Data for Name: storage; Type: TABLE DATA; Schema: kslate; Owner: kslate_owner
--

COPY kslate.storage (version, migrated_at) FROM stdin;
1	2026-11-29 22:08:01.040149+00
\.


--
-- Name: checkpoint checkpoint_pkey; Type: CONSTRAINT; Schema: kslate; Owner: kslate_owner
--

ALTER TABLE ONLY kslate.checkpoint
    ADD CONSTRAINT checkpoint_pkey PRIMARY KEY (record, checkpoint_id);


--
-- Name: claim claim_pkey; Type: CONSTRAINT; Schema: kslate; Owner: kslate_owner
--

ALTER TABLE ONLY kslate.claim
    ADD CONSTRAINT claim_pkey PRIMARY KEY (record, field);


--
-- Name: class class_pkey; Type: CONSTRAINT; Schema: kslate; Owner: kslate_owner
--

ALTER TABLE ONLY kslate.class
    ADD CONSTRAINT class_pkey PRIMARY KEY (class, version);


--
-- Name: field field_pkey; Type: CONSTRAINT; Schema: kslate; Owner: kslate_owner
--

ALTER TABLE ONLY kslate.field
    ADD CONSTRAINT field_pkey PRIMARY KEY (record, field);


--
-- Name: history history_pkey; Type: CONSTRAINT; Schema: kslate; Owner: kslate_owner
--

ALTER TABLE ONLY kslate.history
    ADD CONSTRAINT history_pkey PRIMARY KEY (record, record_version);


--
-- Name: idempotency idempotency_pkey; Type: CONSTRAINT; Schema: kslate; Owner: kslate_owner
--

ALTER TABLE ONLY kslate.idempotency
    ADD CONSTRAINT idempotency_pkey PRIMARY KEY (record, identity, key);


--
-- Name: record record_pkey; Type: CONSTRAINT; Schema: kslate; Owner: kslate_owner
--

ALTER TABLE ONLY kslate.record
    ADD CONSTRAINT record_pkey PRIMARY KEY (record);


--
-- Name: storage storage_pkey; Type: CONSTRAINT; Schema: kslate; Owner: kslate_owner
--

ALTER TABLE ONLY kslate.storage
    ADD CONSTRAINT storage_pkey PRIMARY KEY (version);


--
-- Name: checkpoint_role; Type: INDEX; Schema: kslate; Owner: kslate_owner
--

CREATE INDEX checkpoint_role ON kslate.checkpoint USING btree (record, role, checkpoint_id);


--
-- Name: claim_open; Type: INDEX; Schema: kslate; Owner: kslate_owner
--

CREATE INDEX claim_open ON kslate.claim USING btree (class, field, queued_at, record) WHERE (state = 'open'::text);


--
-- Name: claim_recheck; Type: INDEX; Schema: kslate; Owner: kslate_owner
--

CREATE INDEX claim_recheck ON kslate.claim USING btree (class, field, recheck_at) WHERE (state = 'claimed'::text);


--
-- Name: history_field; Type: INDEX; Schema: kslate; Owner: kslate_owner
--

CREATE INDEX history_field ON kslate.history USING btree (record, field, version);


--
-- Name: idempotency_age; Type: INDEX; Schema: kslate; Owner: kslate_owner
--

CREATE INDEX idempotency_age ON kslate.idempotency USING btree (created_at);


--
-- Name: checkpoint a_keep; Type: TRIGGER; Schema: kslate; Owner: kslate_owner
--

CREATE TRIGGER a_keep BEFORE INSERT OR DELETE OR UPDATE OR TRUNCATE ON kslate.checkpoint FOR EACH STATEMENT EXECUTE FUNCTION public.kslate_keep();


--
-- Name: claim a_keep; Type: TRIGGER; Schema: kslate; Owner: kslate_owner
--

CREATE TRIGGER a_keep BEFORE DELETE OR TRUNCATE ON kslate.claim FOR EACH STATEMENT EXECUTE FUNCTION public.kslate_keep();


--
-- Name: class a_keep; Type: TRIGGER; Schema: kslate; Owner: kslate_owner
--

CREATE TRIGGER a_keep BEFORE INSERT OR DELETE OR UPDATE OR TRUNCATE ON kslate.class FOR EACH STATEMENT EXECUTE FUNCTION public.kslate_keep();


--
-- Name: field a_keep; Type: TRIGGER; Schema: kslate; Owner: kslate_owner
--

CREATE TRIGGER a_keep BEFORE DELETE OR TRUNCATE ON kslate.field FOR EACH STATEMENT EXECUTE FUNCTION public.kslate_keep();


--
-- Name: history a_keep; Type: TRIGGER; Schema: kslate; Owner: kslate_owner
--

CREATE TRIGGER a_keep BEFORE INSERT OR DELETE OR UPDATE OR TRUNCATE ON kslate.history FOR EACH STATEMENT EXECUTE FUNCTION public.kslate_keep();


--
-- Name: record a_keep; Type: TRIGGER; Schema: kslate; Owner: kslate_owner
--

CREATE TRIGGER a_keep BEFORE DELETE OR TRUNCATE ON kslate.record FOR EACH STATEMENT EXECUTE FUNCTION public.kslate_keep();


--
-- Name: claim a_version; Type: TRIGGER; Schema: kslate; Owner: kslate_owner
--

CREATE TRIGGER a_version BEFORE INSERT OR UPDATE ON kslate.claim FOR EACH ROW EXECUTE FUNCTION public.kslate_claim_before();


--
-- Name: field a_version; Type: TRIGGER; Schema: kslate; Owner: kslate_owner
--

CREATE TRIGGER a_version BEFORE INSERT OR UPDATE ON kslate.field FOR EACH ROW EXECUTE FUNCTION public.kslate_field_before();


--
-- Name: record a_version; Type: TRIGGER; Schema: kslate; Owner: kslate_owner
--

CREATE TRIGGER a_version BEFORE INSERT OR UPDATE ON kslate.record FOR EACH ROW EXECUTE FUNCTION public.kslate_record_before();


--
-- Name: class z_changed; Type: TRIGGER; Schema: kslate; Owner: kslate_owner
--

CREATE TRIGGER z_changed AFTER INSERT OR DELETE OR UPDATE OR TRUNCATE ON kslate.class FOR EACH STATEMENT EXECUTE FUNCTION public.kslate_class_changed();


--
-- Name: claim z_history; Type: TRIGGER; Schema: kslate; Owner: kslate_owner
--

CREATE TRIGGER z_history AFTER UPDATE ON kslate.claim FOR EACH ROW EXECUTE FUNCTION public.kslate_claim_after();


--
-- Name: field z_history; Type: TRIGGER; Schema: kslate; Owner: kslate_owner
--

CREATE TRIGGER z_history AFTER INSERT OR UPDATE ON kslate.field FOR EACH ROW EXECUTE FUNCTION public.kslate_field_after();


--
-- Name: record z_history; Type: TRIGGER; Schema: kslate; Owner: kslate_owner
--

CREATE TRIGGER z_history AFTER INSERT ON kslate.record FOR EACH ROW EXECUTE FUNCTION public.kslate_record_after();


--
-- Name: SCHEMA kslate; Type: ACL; Schema: -; Owner: kslate_owner
--

GRANT USAGE ON SCHEMA kslate TO kslate_reader;
GRANT USAGE ON SCHEMA kslate TO kslate_gateway;


--
-- Name: FUNCTION kslate_append(record text, field text, value jsonb, evidence text, claim_id uuid, expected_version bigint, idempotency_key text, identity text); Type: ACL; Schema: public; Owner: kslate
--

GRANT ALL ON FUNCTION public.kslate_append(record text, field text, value jsonb, evidence text, claim_id uuid, expected_version bigint, idempotency_key text, identity text) TO kslate_user;
GRANT ALL ON FUNCTION public.kslate_append(record text, field text, value jsonb, evidence text, claim_id uuid, expected_version bigint, idempotency_key text, identity text) TO kslate_gateway;
GRANT ALL ON FUNCTION public.kslate_append(record text, field text, value jsonb, evidence text, claim_id uuid, expected_version bigint, idempotency_key text, identity text) TO kslate_admin;


--
-- Name: FUNCTION kslate_blame(record text, field text, after bigint, identity text); Type: ACL; Schema: public; Owner: kslate
--

GRANT ALL ON FUNCTION public.kslate_blame(record text, field text, after bigint, identity text) TO kslate_user;
GRANT ALL ON FUNCTION public.kslate_blame(record text, field text, after bigint, identity text) TO kslate_gateway;
GRANT ALL ON FUNCTION public.kslate_blame(record text, field text, after bigint, identity text) TO kslate_admin;


--
-- Name: FUNCTION kslate_checkpoint_list(record text, role text, after bigint, page_size integer, identity text); Type: ACL; Schema: public; Owner: kslate
--

GRANT ALL ON FUNCTION public.kslate_checkpoint_list(record text, role text, after bigint, page_size integer, identity text) TO kslate_user;
GRANT ALL ON FUNCTION public.kslate_checkpoint_list(record text, role text, after bigint, page_size integer, identity text) TO kslate_gateway;
GRANT ALL ON FUNCTION public.kslate_checkpoint_list(record text, role text, after bigint, page_size integer, identity text) TO kslate_admin;


--
-- Name: FUNCTION kslate_checkpoint_load(record text, role text, checkpoint_id bigint, identity text); Type: ACL; Schema: public; Owner: kslate
--

GRANT ALL ON FUNCTION public.kslate_checkpoint_load(record text, role text, checkpoint_id bigint, identity text) TO kslate_user;
GRANT ALL ON FUNCTION public.kslate_checkpoint_load(record text, role text, checkpoint_id bigint, identity text) TO kslate_gateway;
GRANT ALL ON FUNCTION public.kslate_checkpoint_load(record text, role text, checkpoint_id bigint, identity text) TO kslate_admin;


--
-- Name: FUNCTION kslate_checkpoint_save(record text, document jsonb, role text, seen_version bigint, claim_id uuid, idempotency_key text, identity text); Type: ACL; Schema: public; Owner: kslate
--

GRANT ALL ON FUNCTION public.kslate_checkpoint_save(record text, document jsonb, role text, seen_version bigint, claim_id uuid, idempotency_key text, identity text) TO kslate_user;
GRANT ALL ON FUNCTION public.kslate_checkpoint_save(record text, document jsonb, role text, seen_version bigint, claim_id uuid, idempotency_key text, identity text) TO kslate_gateway;
GRANT ALL ON FUNCTION public.kslate_checkpoint_save(record text, document jsonb, role text, seen_version bigint, claim_id uuid, idempotency_key text, identity text) TO kslate_admin;


--
-- Name: FUNCTION kslate_claim(record text, field text, lease_seconds double precision, reattach boolean, idempotency_key text, identity text); Type: ACL; Schema: public; Owner: kslate
--

GRANT ALL ON FUNCTION public.kslate_claim(record text, field text, lease_seconds double precision, reattach boolean, idempotency_key text, identity text) TO kslate_user;
GRANT ALL ON FUNCTION public.kslate_claim(record text, field text, lease_seconds double precision, reattach boolean, idempotency_key text, identity text) TO kslate_gateway;
GRANT ALL ON FUNCTION public.kslate_claim(record text, field text, lease_seconds double precision, reattach boolean, idempotency_key text, identity text) TO kslate_admin;


--
-- Name: FUNCTION kslate_claim_next(class text, field text, lease_seconds double precision, filter jsonb, idempotency_key text, identity text); Type: ACL; Schema: public; Owner: kslate
--

GRANT ALL ON FUNCTION public.kslate_claim_next(class text, field text, lease_seconds double precision, filter jsonb, idempotency_key text, identity text) TO kslate_user;
GRANT ALL ON FUNCTION public.kslate_claim_next(class text, field text, lease_seconds double precision, filter jsonb, idempotency_key text, identity text) TO kslate_gateway;
GRANT ALL ON FUNCTION public.kslate_claim_next(class text, field text, lease_seconds double precision, filter jsonb, idempotency_key text, identity text) TO kslate_admin;


--
-- Name: FUNCTION kslate_class(class text, version bigint, identity text); Type: ACL; Schema: public; Owner: kslate
--

GRANT ALL ON FUNCTION public.kslate_class(class text, version bigint, identity text) TO kslate_user;
GRANT ALL ON FUNCTION public.kslate_class(class text, version bigint, identity text) TO kslate_gateway;
GRANT ALL ON FUNCTION public.kslate_class(class text, version bigint, identity text) TO kslate_admin;


--
-- Name: FUNCTION kslate_class_apply(source text, dry_run boolean, idempotency_key text, identity text); Type: ACL; Schema: public; Owner: kslate
--

GRANT ALL ON FUNCTION public.kslate_class_apply(source text, dry_run boolean, idempotency_key text, identity text) TO kslate_admin;
GRANT ALL ON FUNCTION public.kslate_class_apply(source text, dry_run boolean, idempotency_key text, identity text) TO kslate_gateway;


--
-- Name: FUNCTION kslate_class_list(identity text); Type: ACL; Schema: public; Owner: kslate
--

GRANT ALL ON FUNCTION public.kslate_class_list(identity text) TO kslate_user;
GRANT ALL ON FUNCTION public.kslate_class_list(identity text) TO kslate_gateway;
GRANT ALL ON FUNCTION public.kslate_class_list(identity text) TO kslate_admin;


--
-- Name: FUNCTION kslate_complete(record text, field text, claim_id uuid, value jsonb, evidence text, idempotency_key text, identity text); Type: ACL; Schema: public; Owner: kslate
--

GRANT ALL ON FUNCTION public.kslate_complete(record text, field text, claim_id uuid, value jsonb, evidence text, idempotency_key text, identity text) TO kslate_user;
GRANT ALL ON FUNCTION public.kslate_complete(record text, field text, claim_id uuid, value jsonb, evidence text, idempotency_key text, identity text) TO kslate_gateway;
GRANT ALL ON FUNCTION public.kslate_complete(record text, field text, claim_id uuid, value jsonb, evidence text, idempotency_key text, identity text) TO kslate_admin;


--
-- Name: FUNCTION kslate_create(record text, fields jsonb, evidence text, idempotency_key text, identity text); Type: ACL; Schema: public; Owner: kslate
--

GRANT ALL ON FUNCTION public.kslate_create(record text, fields jsonb, evidence text, idempotency_key text, identity text) TO kslate_user;
GRANT ALL ON FUNCTION public.kslate_create(record text, fields jsonb, evidence text, idempotency_key text, identity text) TO kslate_gateway;
GRANT ALL ON FUNCTION public.kslate_create(record text, fields jsonb, evidence text, idempotency_key text, identity text) TO kslate_admin;


--
-- Name: FUNCTION kslate_doctor(identity text); Type: ACL; Schema: public; Owner: kslate
--

GRANT ALL ON FUNCTION public.kslate_doctor(identity text) TO kslate_admin;


--
-- Name: FUNCTION kslate_entries(record text, field text, after bigint, page_size integer, newest_first boolean, identity text); Type: ACL; Schema: public; Owner: kslate
--

GRANT ALL ON FUNCTION public.kslate_entries(record text, field text, after bigint, page_size integer, newest_first boolean, identity text) TO kslate_user;
GRANT ALL ON FUNCTION public.kslate_entries(record text, field text, after bigint, page_size integer, newest_first boolean, identity text) TO kslate_gateway;
GRANT ALL ON FUNCTION public.kslate_entries(record text, field text, after bigint, page_size integer, newest_first boolean, identity text) TO kslate_admin;


--
-- Name: FUNCTION kslate_field_at(record text, field text, version bigint, identity text); Type: ACL; Schema: public; Owner: kslate
--

GRANT ALL ON FUNCTION public.kslate_field_at(record text, field text, version bigint, identity text) TO kslate_user;
GRANT ALL ON FUNCTION public.kslate_field_at(record text, field text, version bigint, identity text) TO kslate_gateway;
GRANT ALL ON FUNCTION public.kslate_field_at(record text, field text, version bigint, identity text) TO kslate_admin;


--
-- Name: FUNCTION kslate_fields(record text, fields text[], identity text); Type: ACL; Schema: public; Owner: kslate
--

GRANT ALL ON FUNCTION public.kslate_fields(record text, fields text[], identity text) TO kslate_user;
GRANT ALL ON FUNCTION public.kslate_fields(record text, fields text[], identity text) TO kslate_gateway;
GRANT ALL ON FUNCTION public.kslate_fields(record text, fields text[], identity text) TO kslate_admin;


--
-- Name: FUNCTION kslate_force_release(record text, field text, expected_epoch bigint, reason text, idempotency_key text, identity text); Type: ACL; Schema: public; Owner: kslate
--

GRANT ALL ON FUNCTION public.kslate_force_release(record text, field text, expected_epoch bigint, reason text, idempotency_key text, identity text) TO kslate_user;
GRANT ALL ON FUNCTION public.kslate_force_release(record text, field text, expected_epoch bigint, reason text, idempotency_key text, identity text) TO kslate_gateway;
GRANT ALL ON FUNCTION public.kslate_force_release(record text, field text, expected_epoch bigint, reason text, idempotency_key text, identity text) TO kslate_admin;


--
-- Name: FUNCTION kslate_forget_keys(older_than interval); Type: ACL; Schema: public; Owner: kslate
--

GRANT ALL ON FUNCTION public.kslate_forget_keys(older_than interval) TO kslate_admin;


--
-- Name: FUNCTION kslate_get(record text, fields text[], identity text); Type: ACL; Schema: public; Owner: kslate
--

GRANT ALL ON FUNCTION public.kslate_get(record text, fields text[], identity text) TO kslate_user;
GRANT ALL ON FUNCTION public.kslate_get(record text, fields text[], identity text) TO kslate_gateway;
GRANT ALL ON FUNCTION public.kslate_get(record text, fields text[], identity text) TO kslate_admin;


--
-- Name: FUNCTION kslate_history(record text, field text, after bigint, page_size integer, newest_first boolean, with_values boolean, identity text); Type: ACL; Schema: public; Owner: kslate
--

GRANT ALL ON FUNCTION public.kslate_history(record text, field text, after bigint, page_size integer, newest_first boolean, with_values boolean, identity text) TO kslate_user;
GRANT ALL ON FUNCTION public.kslate_history(record text, field text, after bigint, page_size integer, newest_first boolean, with_values boolean, identity text) TO kslate_gateway;
GRANT ALL ON FUNCTION public.kslate_history(record text, field text, after bigint, page_size integer, newest_first boolean, with_values boolean, identity text) TO kslate_admin;


--
-- Name: FUNCTION kslate_list(class text, filter jsonb, fields text[], after text, page_size integer, identity text); Type: ACL; Schema: public; Owner: kslate
--

GRANT ALL ON FUNCTION public.kslate_list(class text, filter jsonb, fields text[], after text, page_size integer, identity text) TO kslate_user;
GRANT ALL ON FUNCTION public.kslate_list(class text, filter jsonb, fields text[], after text, page_size integer, identity text) TO kslate_gateway;
GRANT ALL ON FUNCTION public.kslate_list(class text, filter jsonb, fields text[], after text, page_size integer, identity text) TO kslate_admin;


--
-- Name: FUNCTION kslate_release(record text, field text, claim_id uuid, reason text, idempotency_key text, identity text); Type: ACL; Schema: public; Owner: kslate
--

GRANT ALL ON FUNCTION public.kslate_release(record text, field text, claim_id uuid, reason text, idempotency_key text, identity text) TO kslate_user;
GRANT ALL ON FUNCTION public.kslate_release(record text, field text, claim_id uuid, reason text, idempotency_key text, identity text) TO kslate_gateway;
GRANT ALL ON FUNCTION public.kslate_release(record text, field text, claim_id uuid, reason text, idempotency_key text, identity text) TO kslate_admin;


--
-- Name: FUNCTION kslate_renew(record text, field text, claim_id uuid, lease_seconds double precision, identity text); Type: ACL; Schema: public; Owner: kslate
--

GRANT ALL ON FUNCTION public.kslate_renew(record text, field text, claim_id uuid, lease_seconds double precision, identity text) TO kslate_user;
GRANT ALL ON FUNCTION public.kslate_renew(record text, field text, claim_id uuid, lease_seconds double precision, identity text) TO kslate_gateway;
GRANT ALL ON FUNCTION public.kslate_renew(record text, field text, claim_id uuid, lease_seconds double precision, identity text) TO kslate_admin;


--
-- Name: FUNCTION kslate_reopen(record text, field text, reason text, idempotency_key text, identity text); Type: ACL; Schema: public; Owner: kslate
--

GRANT ALL ON FUNCTION public.kslate_reopen(record text, field text, reason text, idempotency_key text, identity text) TO kslate_user;
GRANT ALL ON FUNCTION public.kslate_reopen(record text, field text, reason text, idempotency_key text, identity text) TO kslate_gateway;
GRANT ALL ON FUNCTION public.kslate_reopen(record text, field text, reason text, idempotency_key text, identity text) TO kslate_admin;


--
-- Name: FUNCTION kslate_version(); Type: ACL; Schema: public; Owner: kslate
--

GRANT ALL ON FUNCTION public.kslate_version() TO kslate_user;
GRANT ALL ON FUNCTION public.kslate_version() TO kslate_gateway;
GRANT ALL ON FUNCTION public.kslate_version() TO kslate_admin;


--
-- Name: FUNCTION kslate_whoami(identity text); Type: ACL; Schema: public; Owner: kslate
--

GRANT ALL ON FUNCTION public.kslate_whoami(identity text) TO kslate_user;
GRANT ALL ON FUNCTION public.kslate_whoami(identity text) TO kslate_gateway;
GRANT ALL ON FUNCTION public.kslate_whoami(identity text) TO kslate_admin;


--
-- Name: FUNCTION kslate_write(record text, field text, value jsonb, expected_version bigint, evidence text, claim_id uuid, idempotency_key text, identity text); Type: ACL; Schema: public; Owner: kslate
--

GRANT ALL ON FUNCTION public.kslate_write(record text, field text, value jsonb, expected_version bigint, evidence text, claim_id uuid, idempotency_key text, identity text) TO kslate_user;
GRANT ALL ON FUNCTION public.kslate_write(record text, field text, value jsonb, expected_version bigint, evidence text, claim_id uuid, idempotency_key text, identity text) TO kslate_gateway;
GRANT ALL ON FUNCTION public.kslate_write(record text, field text, value jsonb, expected_version bigint, evidence text, claim_id uuid, idempotency_key text, identity text) TO kslate_admin;


--
-- Name: FUNCTION kslate_write_many(record text, changes jsonb, claim_id uuid, idempotency_key text, identity text); Type: ACL; Schema: public; Owner: kslate
--

GRANT ALL ON FUNCTION public.kslate_write_many(record text, changes jsonb, claim_id uuid, idempotency_key text, identity text) TO kslate_user;
GRANT ALL ON FUNCTION public.kslate_write_many(record text, changes jsonb, claim_id uuid, idempotency_key text, identity text) TO kslate_gateway;
GRANT ALL ON FUNCTION public.kslate_write_many(record text, changes jsonb, claim_id uuid, idempotency_key text, identity text) TO kslate_admin;


--
-- Name: TABLE checkpoint; Type: ACL; Schema: kslate; Owner: kslate_owner
--

GRANT SELECT ON TABLE kslate.checkpoint TO kslate_reader;


--
-- Name: TABLE claim; Type: ACL; Schema: kslate; Owner: kslate_owner
--

GRANT SELECT ON TABLE kslate.claim TO kslate_reader;


--
-- Name: COLUMN claim.state; Type: ACL; Schema: kslate; Owner: kslate_owner
--

GRANT SELECT(state) ON TABLE kslate.claim TO kslate_gateway;


--
-- Name: COLUMN claim.expires_at; Type: ACL; Schema: kslate; Owner: kslate_owner
--

GRANT SELECT(expires_at) ON TABLE kslate.claim TO kslate_gateway;


--
-- Name: TABLE claims_now; Type: ACL; Schema: kslate; Owner: kslate_owner
--

GRANT SELECT ON TABLE kslate.claims_now TO kslate_reader;


--
-- Name: TABLE class; Type: ACL; Schema: kslate; Owner: kslate_owner
--

GRANT SELECT ON TABLE kslate.class TO kslate_reader;


--
-- Name: TABLE history; Type: ACL; Schema: kslate; Owner: kslate_owner
--

GRANT SELECT ON TABLE kslate.history TO kslate_reader;


--
-- Name: TABLE entry; Type: ACL; Schema: kslate; Owner: kslate_owner
--

GRANT SELECT ON TABLE kslate.entry TO kslate_reader;


--
-- Name: TABLE field; Type: ACL; Schema: kslate; Owner: kslate_owner
--

GRANT SELECT ON TABLE kslate.field TO kslate_reader;


--
-- Name: TABLE record; Type: ACL; Schema: kslate; Owner: kslate_owner
--

GRANT SELECT ON TABLE kslate.record TO kslate_reader;


--
-- Name: TABLE gates; Type: ACL; Schema: kslate; Owner: kslate_owner
--

GRANT SELECT ON TABLE kslate.gates TO kslate_reader;


--
-- Name: TABLE idempotency; Type: ACL; Schema: kslate; Owner: kslate_owner
--

GRANT SELECT ON TABLE kslate.idempotency TO kslate_reader;


--
-- Name: TABLE lapsed; Type: ACL; Schema: kslate; Owner: kslate_owner
--

GRANT SELECT ON TABLE kslate.lapsed TO kslate_reader;


--
-- Name: TABLE storage; Type: ACL; Schema: kslate; Owner: kslate_owner
--

GRANT SELECT ON TABLE kslate.storage TO kslate_reader;
GRANT SELECT ON TABLE kslate.storage TO kslate_gateway;


--
-- Name: TABLE timeline; Type: ACL; Schema: kslate; Owner: kslate_owner
--

GRANT SELECT ON TABLE kslate.timeline TO kslate_reader;


--
-- PostgreSQL database dump complete
--


