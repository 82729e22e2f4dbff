//! The harness itself: a cluster comes back from kill -9, and is gone when it is dropped.

use kslate_tests::Cluster;

#[test]
fn a_cluster_recovers_and_leaves_nothing() {
    let cluster = Cluster::start();
    let dir = cluster.dir().to_path_buf();
    let database = cluster.empty_database();
    database.psql("kslate", "create table kept as select 1 as n");
    for _ in 0..3 {
        cluster.kill9();
        assert!(database.try_psql("kslate", "select 1").is_err());
        cluster.start_again();
        assert_eq!(database.psql("kslate", "select n from kept"), "1");
    }
    cluster.restart();
    assert_eq!(database.psql("kslate", "show fsync"), "on");
    drop(cluster);
    assert!(!dir.exists());
}
