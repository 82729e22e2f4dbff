//! The server reaches PostgreSQL over TLS, as `sslmode` says, and only a server that it can trust.

mod terminator;

use kslate_tests::{Cluster, Database, Shim, KEYS};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

/// What encrypts in front of the database.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Front {
    Postgres,
    /// Where PostgreSQL was built without TLS. It lets nobody in who does not encrypt.
    Terminator,
}

const PASSWORD: &str = "of%20the%20server";

/// An authority of its own; writes its certificate into a file.
fn authority(file: &Path) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("a key");
    let authority = CertifiedIssuer::self_signed(params, key).expect("a certificate");
    fs::write(file, authority.pem()).expect("a file");
    authority
}

/// Writes a file into the data folder as the server's own user, who must own a key.
fn give(database: &Database, name: &str, pem: &str) {
    database.psql(
        "postgres",
        &format!("copy (select line from regexp_split_to_table('{pem}', '\\n') line) to program 'umask 077; cat >{name}'"),
    );
}

/// A cluster that listens on two addresses of this machine, for TLS and passwords only; its certificate is for the first.
fn listen(
    cluster: &Cluster,
    authority: &CertifiedIssuer<'_, KeyPair>,
) -> (Ipv4Addr, Ipv4Addr, Front) {
    // The port is the socket's too, so that another address is taken where others take another port.
    let [.., high, low] = std::process::id().to_be_bytes();
    let (named, other) = (
        Ipv4Addr::new(127, 77, high, low),
        Ipv4Addr::new(127, 78, high, low),
    );
    let key = KeyPair::generate().expect("a key");
    let certificate = CertificateParams::new([named.to_string()])
        .expect("an address")
        .signed_by(&key, authority)
        .expect("a certificate");
    let database = cluster.empty_database();
    let built = "select setting ~ 'ssl' from pg_config where name = 'CONFIGURE'";
    if database.psql("postgres", built) != "t" {
        let addresses = [named, other];
        terminator::listen(
            addresses,
            cluster.socket(),
            &certificate.pem(),
            &key.serialize_pem(),
        );
        return (named, other, Front::Terminator);
    }
    give(&database, "server.crt", &certificate.pem());
    give(&database, "server.key", &key.serialize_pem());
    let rules = "local all all trust\nhostssl all all 127.0.0.0/8 scram-sha-256\n";
    database.psql(
        "postgres",
        &format!(
            "alter role kslate_server password 'of the server';
             alter system set ssl = on;
             alter system set listen_addresses = '{named},{other}';
             copy (select line from regexp_split_to_table('{rules}', '\\n') line) to program 'cat >pg_hba.conf'"
        ),
    );
    cluster.restart();
    (named, other, Front::Postgres)
}

/// What `/readyz` says through a server with these parameters, and whether its connections are encrypted; its log where it
/// is not ready.
fn ask(
    database: &Database,
    host: Ipv4Addr,
    parameters: &str,
    front: Front,
) -> Result<bool, String> {
    let url = format!(
        "postgresql://kslate_server:{PASSWORD}@{host}/{}?{parameters}",
        database.name()
    );
    let shim = Shim::start_with(database, KEYS, &[("DATABASE_URL", &url)]);
    let answer = shim.anonymous().get("/readyz");
    if answer.status == 200 {
        let encrypted = database.psql(
            "postgres",
            "select bool_and(ssl) from pg_stat_ssl join pg_stat_activity using (pid) where usename = 'kslate_server'",
        );
        return Ok(encrypted == "t" || front == Front::Terminator);
    }
    answer.refused(503, "UNAVAILABLE");
    let log = shim.log();
    assert!(
        !log.contains("of the server") && !log.contains(PASSWORD),
        "{log}"
    );
    Err(log)
}

#[test]
fn sslmode() {
    let cluster = Cluster::start();
    let right = cluster.dir().join("right.pem");
    let wrong = cluster.dir().join("wrong.pem");
    let authority_of_ours = authority(&right);
    authority(&wrong);
    let (named, other, front) = listen(&cluster, &authority_of_ours);
    let database = cluster.fresh_database();
    let with = |root: &Path, mode: &str| format!("sslmode={mode}&sslrootcert={}", root.display());

    for (host, parameters) in [
        (named, "sslmode=require".to_owned()),
        (other, "sslmode=require".to_owned()),
        (named, "sslmode=prefer".to_owned()),
        (named, "application_name=default-is-prefer".to_owned()),
        (named, with(&right, "require")),
        (named, with(&right, "verify-full")),
    ] {
        assert_eq!(
            ask(&database, host, &parameters, front),
            Ok(true),
            "{parameters}"
        );
    }
    for (host, parameters, cause) in [
        (
            named,
            with(&wrong, "verify-full"),
            "invalid peer certificate",
        ),
        (named, with(&wrong, "require"), "invalid peer certificate"),
        (other, with(&right, "verify-full"), "not valid for name"),
        // The control: without TLS this cluster lets nobody in.
        (named, "sslmode=disable".to_owned(), "no encryption"),
    ] {
        let log = ask(&database, host, &parameters, front).expect_err(&parameters);
        assert!(log.contains(cause), "{parameters}: {log}");
    }
}

/// A line that must be encrypted is none where the server has no TLS, whatever else it offers.
#[test]
fn required_of_a_server_without_tls() {
    let cluster = Cluster::start();
    let database = cluster.fresh_database();
    let [.., high, low] = std::process::id().to_be_bytes();
    let host = Ipv4Addr::new(127, 79, high, low);
    database.psql(
        "postgres",
        &format!(
            "alter system set listen_addresses = '{host}';
             copy (select line from regexp_split_to_table('local all all trust\nhost all all 127.0.0.0/8 trust\n', '\\n') line)
             to program 'cat >pg_hba.conf'"
        ),
    );
    cluster.restart();
    assert_eq!(
        ask(&database, host, "sslmode=prefer", Front::Postgres),
        Ok(false)
    );
    let log = ask(&database, host, "sslmode=require", Front::Postgres).expect_err("no TLS there");
    assert!(log.contains("TLS"), "{log}");
}
