//! The same operations on the real thing: one connection, a class of its own for each sequence, the clock set forward by a superuser.

use crate::model::{role, CLASS};
use crate::settle::Call;
use crate::steps::{Op, KEYS};
use kslate_tests::{Database, Refused, Session};
use serde_json::{json, Value};
use std::future::Future;
use std::sync::Arc;

/// What the database said: a row (null for none), or the refusal.
pub type Told = Result<Value, Refused>;

/// A connection and the runtime that drives it. A sequence is run to its end before the next.
pub struct Real {
    runtime: tokio::runtime::Runtime,
    session: Arc<Session>,
    worker: usize,
    sequences: usize,
    class: String,
    /// The claim_id of each grant, in order.
    grants: Vec<String>,
}

impl Real {
    pub fn connect(database: &Database<'_>, worker: usize) -> Real {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let session = runtime.block_on(async {
            let session = Session::login(database, "postgres").await;
            session
                .run("set synchronous_commit = off; set role kslate_server")
                .await;
            session
        });
        Real {
            runtime,
            session,
            worker,
            sequences: 0,
            class: String::new(),
            grants: Vec::new(),
        }
    }

    /// Begins a sequence: a new class, the clock as it is.
    pub fn begin(&mut self) {
        self.sequences += 1;
        self.class = format!("m-{}-{}", self.worker, self.sequences);
        self.grants.clear();
        let apply = format!(
            "select from kslate_class_apply('class: {}{CLASS}', identity => 'apikey:ops')",
            self.class
        );
        self.clock(0);
        self.run(&apply);
    }

    pub fn clock(&self, seconds: i64) {
        self.as_superuser(&format!("set kslate.clock_offset = {seconds}"));
    }

    fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    fn run(&self, sql: &str) -> String {
        self.wait(self.session.run(sql))
    }

    fn record(&self, key: usize) -> String {
        format!("{}/r{key}", self.class)
    }

    /// The number of the record in an answer.
    pub fn key(&self, record: &Value) -> Option<usize> {
        (0..KEYS).find(|key| *record == self.record(*key))
    }

    /// Calls what a settled step says.
    pub fn call(&mut self, call: &Call) -> Told {
        let version = call
            .version
            .map_or("null".into(), |version| version.to_string());
        let never = "00000000-0000-4000-8000-000000000000";
        let claim = match call.claim {
            None => "null".to_string(),
            Some(number) => format!(
                "'{}'",
                self.grants.get(number).map_or(never, String::as_str)
            ),
        };
        let (function, more) = match &call.op {
            Op::Create { values: false } => ("create", String::new()),
            Op::Create { values: true } => ("create", ", '{\"plan\": 1}'".into()),
            Op::Write { field, value, .. } => (
                "write",
                format!(", '{field}', '{value}', {version}, claim_id => {claim}"),
            ),
            Op::Append { .. } => (
                "append",
                format!(", 'log', '\"entry\"', claim_id => {claim}"),
            ),
            Op::Claim { seconds, reattach } => ("claim", format!(", 'job', {seconds}, {reattach}")),
            Op::ClaimNext { seconds } => ("claim_next", format!(", 'job', {seconds}")),
            Op::Renew { seconds: None, .. } => ("renew", format!(", 'job', {claim}")),
            Op::Renew {
                seconds: Some(seconds),
                ..
            } => ("renew", format!(", 'job', {claim}, {seconds}")),
            Op::Release { .. } => ("release", format!(", 'job', {claim}")),
            Op::Complete { .. } => ("complete", format!(", 'job', {claim}, '\"done\"'")),
            Op::Reopen => ("reopen", ", 'job'".into()),
            Op::ForceRelease { .. } => ("force_release", format!(", 'job', {version}, 'stuck'")),
            Op::Save { whole, .. } => {
                let document = if *whole { "{\"goal\": 1}" } else { "{}" };
                (
                    "checkpoint_save",
                    format!(", '{document}', seen_version => {version}, claim_id => {claim}"),
                )
            }
            Op::Load => ("checkpoint_load", String::new()),
            Op::Tick { .. } => unreachable!("the clock is no call"),
        };
        let about = match call.op {
            Op::ClaimNext { .. } => self.class.clone(),
            _ => self.record(call.key),
        };
        let sql = format!(
            "select row_to_json(r)::text from kslate_{function}('{about}'{more}, identity => 'apikey:{}') r",
            call.who
        );
        let row = self.wait(self.session.sql(&sql))?;
        let row: Value = if row.is_empty() {
            Value::Null
        } else {
            serde_json::from_str(&row).expect("JSON")
        };
        if let Some(id) = row["claim_id"]
            .as_str()
            .filter(|_| function.starts_with("claim"))
        {
            self.grants.push(id.to_string());
        }
        Ok(row)
    }

    /// What the tables hold of this sequence, in the form of the model's.
    pub fn tables(&self) -> Value {
        let class = &self.class;
        let all = |columns: &str, table: &str, order: &str| {
            format!(
                "coalesce((select json_agg(json_build_array({columns}) order by {order}) from kslate.{table} t where t.record = r.record), '[]')"
            )
        };
        let sql = format!(
            "select coalesce(json_agg(json_build_array(right(r.key, 1)::int, r.version, {}, {}, {}, {}) order by r.record), '[]')
             from kslate.record r where r.class = '{class}'",
            all("field, value, version, author, role, record_version", "field", "field collate \"C\""),
            "(select json_build_array(state, owner, epoch, version, ended) from kslate.claim c where c.record = r.record)",
            all("checkpoint_id, role, record_version", "checkpoint", "checkpoint_id"),
            all("record_version, op, field, version, author, role, epoch, took_over_from", "history", "record_version"),
        );
        serde_json::from_str(&self.as_superuser(&sql)).expect("JSON")
    }

    /// The fields that history says changed above a record version: name, latest version and author, in the order of the changes.
    pub fn changed_since(&self, key: usize, since: i64, who: &str) -> Value {
        let secret = role(who) == Some("boss");
        let sql = format!(
            "with changes as (
               select field, version, author, record_version from kslate.history
               where record = '{record}' and op in ('write', 'append') and record_version > {since}
               union all
               select f, 1, author, 0 from kslate.history, jsonb_object_keys(value) f
               where record = '{record}' and op = 'create' and {since} < 0),
             latest as (select distinct on (field) * from changes order by field, version desc)
             select coalesce(json_agg(json_build_array(field, version, author)
               order by record_version, array_position(array['status', 'plan'], field)), '[]')
             from latest where field <> 'secret' or {secret}",
            record = self.record(key)
        );
        serde_json::from_str(&self.as_superuser(&sql)).expect("JSON")
    }

    fn as_superuser(&self, sql: &str) -> String {
        self.run(&format!("reset role; {sql}; set role kslate_server"))
    }
}

/// An answer's `changed_fields` in the model's form.
pub fn changed_fields(row: &Value) -> Value {
    let elements = row["changed_fields"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    elements
        .iter()
        .map(|element| json!([element["field"], element["version"], element["author"]]))
        .collect()
}
