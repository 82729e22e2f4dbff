//! What a record is like before the race, what each operation is told there, and how a race is compared with its serial twin.

use crate::operations::{class, operation, Operation};
use kslate_tests::crew::claim_id;
use kslate_tests::{Called, Cluster, Database, Session};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// How a race begins. `told` has a line for each operation that is accepted there: what every other is told after it, in the
/// order of the columns; the line `alone` is for those that come without one before them.
pub struct Scene {
    pub name: &'static str,
    told: &'static str,
}

/// held: worker 1 holds the task, its lease is live; no checkpoint. open: worker 1 has released it; a checkpoint is there.
/// lapsed: worker 1's lease has run out; a checkpoint is there.
pub const SCENES: [Scene; 3] = [
    Scene {
        name: "held",
        told: "
          after     claim      renew                release              complete             write                save               resolve            apply
          alone     HELD       ok                   ok                   ok                   ok                   ok                 INVALID_CHECKPOINT ok
          renew     HELD       ok                   ok                   ok                   ok                   ok                 INVALID_CHECKPOINT ok
          release   ok         LEASE_LOST:released  LEASE_LOST:released  LEASE_LOST:released  LEASE_LOST:released  ok                 INVALID_CHECKPOINT ok
          complete  COMPLETED  LEASE_LOST:completed LEASE_LOST:completed LEASE_LOST:completed LEASE_LOST:completed ok                 INVALID_CHECKPOINT ok
          write     HELD       ok                   ok                   ok                   VERSION_CONFLICT     ok                 INVALID_CHECKPOINT ok
          save      HELD       ok                   ok                   ok                   ok                   ok                 ok                 ok
          apply     MALFORMED  MALFORMED            ok                   EVIDENCE_REQUIRED    EVIDENCE_REQUIRED    INVALID_CHECKPOINT INVALID_CHECKPOINT unchanged",
    },
    Scene {
        name: "open",
        told: "
          after     claim      renew                release              complete             write                save               resolve            apply
          alone     ok         LEASE_LOST:released  LEASE_LOST:released  LEASE_LOST:released  LEASE_LOST:released  ok                 ok                 ok
          claim     HELD       LEASE_LOST:released  LEASE_LOST:released  LEASE_LOST:released  LEASE_LOST:released  ok                 ok                 ok
          save      ok         LEASE_LOST:released  LEASE_LOST:released  LEASE_LOST:released  LEASE_LOST:released  ok                 ok                 ok
          resolve   ok         LEASE_LOST:released  LEASE_LOST:released  LEASE_LOST:released  LEASE_LOST:released  ok                 VERSION_CONFLICT   ok
          apply     MALFORMED  MALFORMED            LEASE_LOST:released  LEASE_LOST:released  LEASE_LOST:released  INVALID_CHECKPOINT INVALID_CHECKPOINT unchanged",
    },
    Scene {
        name: "lapsed",
        told: "
          after     claim      renew                 release               complete              write                 save               resolve            apply
          alone     ok         LEASE_LOST:lapsed     LEASE_LOST:lapsed     LEASE_LOST:lapsed     LEASE_LOST:lapsed     ok                 ok                 ok
          claim     HELD       LEASE_LOST:taken_over LEASE_LOST:taken_over LEASE_LOST:taken_over LEASE_LOST:taken_over ok                 ok                 ok
          save      ok         LEASE_LOST:lapsed     LEASE_LOST:lapsed     LEASE_LOST:lapsed     LEASE_LOST:lapsed     ok                 ok                 ok
          resolve   ok         LEASE_LOST:lapsed     LEASE_LOST:lapsed     LEASE_LOST:lapsed     LEASE_LOST:lapsed     ok                 VERSION_CONFLICT   ok
          apply     MALFORMED  MALFORMED             LEASE_LOST:lapsed     LEASE_LOST:lapsed     LEASE_LOST:lapsed     INVALID_CHECKPOINT INVALID_CHECKPOINT unchanged",
    },
];

impl Scene {
    fn line(&self, after: &str) -> Option<Vec<&'static str>> {
        self.told
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .find(|line| line.first() == Some(&after))
    }

    /// What `later` is told after `earlier` (or `alone`), in one word; None where `earlier` is refused here.
    pub fn told(&self, earlier: &str, later: &str) -> Option<&'static str> {
        let names = self.line("after").expect("the names of the columns");
        let column = names.iter().position(|name| *name == later);
        self.line(earlier)
            .map(|line| line[column.expect("a column each")])
    }

    /// The operations that are accepted here when they come first.
    pub fn starters(&self) -> impl Iterator<Item = &'static Operation> + '_ {
        crate::operations::OPERATIONS
            .iter()
            .filter(|first| self.line(first.name).is_some())
    }
}

/// A record of its own class, set up as a scene wants it.
pub struct Stage {
    class: String,
    pub record: String,
    id: String,
}

impl Stage {
    /// The arguments of an operation here.
    pub fn arguments(&self, operation: &Operation) -> String {
        operation
            .arguments
            .replace("{r}", &self.record)
            .replace("{id}", &self.id)
            .replace("{class}", &class(&self.class, true))
    }
}

/// What came of operations done one after the other: the word that each was told, and the state that they leave.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub words: Vec<String>,
    pub state: String,
}

/// A database to race in, two sessions of each caller, and one that looks on.
pub struct Theatre {
    pub database: Database<'static>,
    pub dba: Arc<Session>,
    callers: [HashMap<&'static str, Arc<Session>>; 2],
    staged: AtomicU32,
    twins: Mutex<HashMap<(&'static str, Vec<&'static str>), Outcome>>,
}

impl Theatre {
    pub async fn open() -> Theatre {
        let database = Cluster::shared().fresh_database();
        let mut callers = [HashMap::new(), HashMap::new()];
        for side in &mut callers {
            for who in ["worker/1", "worker/2", "reviewer", "operator"] {
                side.insert(who, Session::agent(&database, who).await);
            }
        }
        Theatre {
            dba: Session::login(&database, "postgres").await,
            database,
            callers,
            staged: AtomicU32::new(0),
            twins: Mutex::default(),
        }
    }

    /// The session that calls an operation on this side (0 or 1) of a race.
    pub fn caller(&self, side: usize, operation: &Operation) -> Arc<Session> {
        self.callers[side][operation.who].clone()
    }

    /// A record as the scene wants it.
    pub async fn stage(&self, scene: &Scene) -> Stage {
        let name = format!("race-{}", self.staged.fetch_add(1, Ordering::Relaxed));
        let mut stage = Stage {
            record: format!("{name}/r"),
            class: name,
            id: String::new(),
        };
        let worker = &self.callers[0]["worker/1"];
        let definition = format!("'{}'", class(&stage.class, false));
        worker.ok("class_apply", &definition).await;
        worker.ok("create", &format!("'{}'", stage.record)).await;
        let claim = format!("'{}', 'job'", stage.record);
        stage.id = claim_id(&worker.ok("claim", &claim).await);
        if scene.name == "held" {
            return stage;
        }
        let save = stage.arguments(operation("save"));
        worker.ok("checkpoint_save", &save).await;
        if scene.name == "lapsed" {
            self.dba.lapse(&stage.record, "job").await;
        } else {
            let release = stage.arguments(operation("release"));
            worker.ok("release", &release).await;
        }
        stage
    }

    /// All that the tables say about a record, but for times and random ids.
    pub async fn state(&self, stage: &Stage) -> String {
        let (record, class) = (&stage.record, &stage.class);
        let all = |columns: &str, table: &str, order: &str| {
            format!(
                "(select json_agg(json_build_array({columns}) order by {order}) from kslate.{table} where record = '{record}')"
            )
        };
        let parts = [
            all("version", "record", "1"),
            all("field, value, version, author, role, evidence, record_version", "field", "field"),
            all("state, owner, role, claim_id is null, epoch, lease_seconds, version, record_version, changed_by, changed_role, reason, ended, recheck_at <= expires_at", "claim", "field"),
            all("checkpoint_id, role, document, record_version, author", "checkpoint", "checkpoint_id"),
            all("record_version, op, field, version, value, author, role, epoch, took_over_from, reason", "history", "record_version"),
            format!("(select max(version) from kslate.class where class = '{class}')"),
        ];
        self.dba
            .run(&format!("select json_build_array({})", parts.join(", ")))
            .await
    }

    /// The serial twin: the same operations on another record like it, each in a transaction of its own, one after the other.
    pub async fn serial(
        &self,
        scene: &'static Scene,
        operations: &[&'static Operation],
    ) -> Outcome {
        let names: Vec<&str> = operations.iter().map(|operation| operation.name).collect();
        let key = (scene.name, names);
        if let Some(known) = self.twins.lock().expect("no panic").get(&key) {
            return known.clone();
        }
        let stage = self.stage(scene).await;
        let mut words = Vec::new();
        let mut before = "alone";
        for operation in operations {
            let caller = self.caller(0, operation);
            let called = caller
                .call(operation.function, &stage.arguments(operation))
                .await;
            words.push(word(&called));
            if let Some(told) = scene.told(before, operation.name) {
                assert_eq!(
                    words.last().map(String::as_str),
                    Some(told),
                    "{}: {key:?}",
                    scene.name
                );
            }
            if called.is_ok() {
                before = operation.name;
            }
        }
        let state = self.state(&stage).await;
        let outcome = Outcome { words, state };
        self.twins
            .lock()
            .expect("no panic")
            .insert(key, outcome.clone());
        outcome
    }
}

/// The answer in a word: `ok` (`unchanged` for a class that was so already), the error, LEASE_LOST with its reason, or
/// PostgreSQL's SQLSTATE where the refusal is not ours.
pub fn word(called: &Called) -> String {
    match called {
        Ok(row) if row["changed"] == false => "unchanged".into(),
        Ok(_) => "ok".into(),
        Err(refused) if refused.error().is_empty() => refused.sqlstate.clone(),
        Err(refused) => {
            let body = refused.is(&refused.error());
            match body["reason"].as_str() {
                Some(reason) => format!("{}:{reason}", refused.error()),
                None => refused.error(),
            }
        }
    }
}
