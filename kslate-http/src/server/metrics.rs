//! Counters in the text format of Prometheus.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use deadpool::Status;

/// Upper bounds of the latency histogram, in seconds.
const BUCKETS: [f64; 13] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

/// All that is counted.
#[derive(Debug, Default)]
pub struct Metrics {
    routes: Mutex<HashMap<String, Route>>,
    /// Claims refused because a lease was live.
    pub held_refusals: AtomicU64,
    /// Claims that displaced another identity's lapsed lease.
    pub takeovers: AtomicU64,
    /// Calls that named a claim which was over, or none where one is needed.
    pub lease_lost: AtomicU64,
    /// Writes that the gate refused.
    pub gate_refusals: AtomicU64,
}

#[derive(Debug, Default)]
struct Route {
    /// By method and status; there are few of each.
    answers: Vec<(String, u16, u64)>,
    buckets: [u64; BUCKETS.len()],
    count: u64,
    seconds: f64,
}

impl Metrics {
    /// One request is done. `route` is the pattern, never the path that was asked for: paths are without number.
    pub fn request(&self, method: &str, route: &str, status: u16, took: Duration) {
        let seconds = took.as_secs_f64();
        let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        if !routes.contains_key(route) {
            routes.insert(route.to_owned(), Route::default());
        }
        let Some(entry) = routes.get_mut(route) else {
            return;
        };
        entry.count += 1;
        entry.seconds += seconds;
        for (bucket, bound) in entry.buckets.iter_mut().zip(BUCKETS) {
            if seconds <= bound {
                *bucket += 1;
            }
        }
        match entry
            .answers
            .iter_mut()
            .find(|(seen, code, _)| seen == method && *code == status)
        {
            Some((_, _, count)) => *count += 1,
            None => entry.answers.push((method.to_owned(), status, 1)),
        }
    }

    /// The text of `/metrics`. `claims_held` is how many leases are live; left out where the database does not say.
    pub fn text(&self, pool: Status, claims_held: Option<u64>) -> String {
        let mut out = String::new();
        let claims_held = claims_held.map(|count| {
            (
                "kslate_claims_held",
                "gauge",
                "Claims whose lease is live.",
                count,
            )
        });
        let others = [
            (
                "kslate_held_refusals_total",
                "counter",
                "Claims refused because another lease was live.",
                self.held_refusals.load(Ordering::Relaxed),
            ),
            (
                "kslate_takeovers_total",
                "counter",
                "Claims that took over from a lapsed lease of another identity.",
                self.takeovers.load(Ordering::Relaxed),
            ),
            (
                "kslate_lease_lost_total",
                "counter",
                "Calls under a claim that was over.",
                self.lease_lost.load(Ordering::Relaxed),
            ),
            (
                "kslate_gate_refusals_total",
                "counter",
                "Writes of status that the gate refused.",
                self.gate_refusals.load(Ordering::Relaxed),
            ),
            (
                "kslate_pool_connections_max",
                "gauge",
                "Most connections to the database.",
                pool.max_size as u64,
            ),
            (
                "kslate_pool_connections",
                "gauge",
                "Connections to the database.",
                pool.size as u64,
            ),
            (
                "kslate_pool_idle",
                "gauge",
                "Connections to the database at rest.",
                pool.available as u64,
            ),
            (
                "kslate_pool_waiting",
                "gauge",
                "Requests that wait for a connection.",
                pool.waiting as u64,
            ),
        ];
        for (name, kind, help, value) in claims_held.into_iter().chain(others) {
            // Writing to a String does not fail, here and below.
            let _ = writeln!(
                out,
                "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}"
            );
        }
        let routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sorted: Vec<(&String, &Route)> = routes.iter().collect();
        sorted.sort_by_key(|(name, _)| name.as_str());
        out.push_str("# HELP kslate_http_requests_total Requests answered.\n# TYPE kslate_http_requests_total counter\n");
        for (name, route) in &sorted {
            for (method, status, count) in &route.answers {
                let _ = writeln!(out, "kslate_http_requests_total{{method=\"{method}\",route=\"{name}\",status=\"{status}\"}} {count}");
            }
        }
        out.push_str("# HELP kslate_http_request_seconds Time to answer.\n# TYPE kslate_http_request_seconds histogram\n");
        for (name, route) in &sorted {
            for (bucket, bound) in route.buckets.iter().zip(BUCKETS) {
                let _ = writeln!(out, "kslate_http_request_seconds_bucket{{route=\"{name}\",le=\"{bound}\"}} {bucket}");
            }
            let _ = writeln!(
                out,
                "kslate_http_request_seconds_bucket{{route=\"{name}\",le=\"+Inf\"}} {}",
                route.count
            );
            let _ = writeln!(
                out,
                "kslate_http_request_seconds_sum{{route=\"{name}\"}} {}",
                route.seconds
            );
            let _ = writeln!(
                out,
                "kslate_http_request_seconds_count{{route=\"{name}\"}} {}",
                route.count
            );
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_counted_once_in_each_place() {
        let metrics = Metrics::default();
        metrics.request("GET", "/v1/whoami", 200, Duration::from_millis(3));
        metrics.request("GET", "/v1/whoami", 401, Duration::from_secs(20));
        metrics.takeovers.fetch_add(1, Ordering::Relaxed);
        let pool = Status {
            max_size: 16,
            size: 1,
            available: 1,
            waiting: 0,
        };
        assert!(!metrics.text(pool, None).contains("kslate_claims_held"));
        let text = metrics.text(pool, Some(3));
        for line in [
            "kslate_claims_held 3",
            "kslate_takeovers_total 1",
            "kslate_pool_connections_max 16",
            "kslate_http_requests_total{method=\"GET\",route=\"/v1/whoami\",status=\"401\"} 1",
            "kslate_http_request_seconds_bucket{route=\"/v1/whoami\",le=\"0.0025\"} 0",
            "kslate_http_request_seconds_bucket{route=\"/v1/whoami\",le=\"0.005\"} 1",
            "kslate_http_request_seconds_bucket{route=\"/v1/whoami\",le=\"10\"} 1",
            "kslate_http_request_seconds_bucket{route=\"/v1/whoami\",le=\"+Inf\"} 2",
            "kslate_http_request_seconds_count{route=\"/v1/whoami\"} 2",
        ] {
            assert!(
                text.lines().any(|found| found == line),
                "{line} is not in\n{text}"
            );
        }
    }
}
