//! A host that takes connections and says nothing, a stopped primary for one, does not keep the next from being asked.

use kslate_tests::{Cluster, Shim, KEYS};
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

#[test]
fn a_host_that_says_nothing_is_passed_by() {
    let database = Cluster::shared().fresh_database();
    let folder = database.cluster().dir().join("silent");
    std::fs::create_dir(&folder).expect("a folder");
    // The kernel takes the connections; nobody ever looks at them.
    let _silent = UnixListener::bind(folder.join(".s.PGSQL.5432")).expect("a socket");
    let url = format!(
        "postgresql:///{}?host={},{}&user=kslate_server&target_session_attrs=read-write",
        database.name(),
        folder.display(),
        database.cluster().socket()
    );
    let shim = Shim::start_with(&database, KEYS, &[("DATABASE_URL", &url)]);
    let begun = Instant::now();
    shim.api("diag-token")
        .put("/v1/records/incidents/inc-1", "{}")
        .expect(201);
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
    // The connection is kept: the next request does not knock there again.
    let begun = Instant::now();
    shim.api("diag-token")
        .get("/v1/records/incidents/inc-1")
        .expect(200);
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(1), "{took:?}");
}
