//! How many leases are live: asked of the database for `/metrics`, now and then.

use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use super::db::{Call, Database};

/// The answer serves all who ask within this time; scrapes come every 10 s or so.
const FRESH_FOR: Duration = Duration::from_secs(5);
/// A scrape must not wait for a database that is away.
const PATIENCE: Duration = Duration::from_secs(2);

const COUNT: Call = Call {
    sql: "SELECT count(*)::text, NULL FROM kslate.claim c WHERE c.state = 'claimed' AND c.expires_at > pg_catalog.clock_timestamp()",
};

/// The last answer, and when it came.
#[derive(Debug, Default)]
pub struct ClaimsHeld {
    last: Mutex<Option<(Instant, Option<u64>)>>,
}

impl ClaimsHeld {
    /// The number, at most five seconds old; None where the database does not say.
    pub async fn ask(&self, database: &Database) -> Option<u64> {
        // Held while the database is asked: who comes meanwhile waits for that answer.
        let mut last = self.last.lock().await;
        if let Some((asked, answer)) = *last {
            if asked.elapsed() < FRESH_FOR {
                return answer;
            }
        }
        let answer = match tokio::time::timeout(PATIENCE, database.one(COUNT, Vec::new())).await {
            Ok(Ok(line)) => line.json.parse().ok(),
            _ => None,
        };
        *last = Some((Instant::now(), answer));
        answer
    }
}
