//! One connection to the database: how it is made, and what it remembers.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use deadpool::managed::{Manager, Metrics, RecycleError, RecycleResult};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres::config::{SslMode, TargetSessionAttrs};
use tokio_postgres::{Client, Config, NoTls, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::hosts::{self, Unreplicated};

/// A connection that has answered within this time is handed out unasked.
const TRUSTED_FOR: Duration = Duration::from_secs(5);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const UNACKNOWLEDGED: Duration = Duration::from_secs(10);

/// What is granted to a host beyond the time to reach it, for TLS and the login.
const GREETING: Duration = Duration::from_secs(1);

/// Where the database is, and how it is talked to.
pub struct Target {
    config: Config,
    /// The same, a host each.
    hosts: Vec<Config>,
    tls: Option<MakeRustlsConnect>,
    /// Kept statements; off behind a pooler that gives each transaction another connection.
    prepare: bool,
}

/// Why a database address cannot be used.
#[derive(Debug)]
pub struct TargetError(String);

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Target {
    /// Reads a `postgresql://` address, libpq's `sslmode` and `sslrootcert` included, or a `key=value` string, where `sslmode` is
    /// disable, prefer or require.
    ///
    /// # Errors
    /// [`TargetError`], which never tells the password.
    pub fn read(url: &str, prepare: bool) -> Result<Self, TargetError> {
        let (url, mode, root) = take_tls(url);
        let mut config: Config = url
            .parse()
            .map_err(|error: tokio_postgres::Error| TargetError(because(&error)))?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(UNACKNOWLEDGED);
        }
        if config.get_application_name().is_none() {
            config.application_name("kslate");
        }
        let tls = match (mode.as_deref(), config.get_ssl_mode()) {
            (Some("disable"), _) | (None, SslMode::Disable) => None,
            (Some("verify-ca" | "verify-full"), _) => {
                config.ssl_mode(SslMode::Require);
                let root = root.ok_or_else(|| {
                    TargetError(
                        "sslmode=verify-full needs sslrootcert=<file>, the CA to trust".to_owned(),
                    )
                })?;
                Some(verified(&root)?)
            }
            (Some("require"), _) => {
                config.ssl_mode(SslMode::Require);
                // As libpq does: a CA that is given is asked.
                Some(root.map_or_else(unverified, |root| verified(&root))?)
            }
            (Some("prefer" | "allow") | None, _) => Some(unverified()?),
            (Some(other), _) => {
                return Err(TargetError(format!(
                    "unknown sslmode {other:?}: one of disable, allow, prefer, require, verify-ca, verify-full"
                )))
            }
        };
        if tls.is_none() {
            config.ssl_mode(SslMode::Disable);
        }
        Ok(Self {
            hosts: hosts::each(&config),
            config,
            tls,
            prepare,
        })
    }

    /// How long one host may take.
    fn patience_with_one(&self) -> Duration {
        let reach = self.config.get_connect_timeout().copied();
        reach.unwrap_or(CONNECT_TIMEOUT) + GREETING
    }

    /// How long a connection may take at most, all hosts tried, and what is asked of it first.
    pub fn patience(&self) -> Duration {
        let hosts = self.config.get_hosts().len().max(1);
        self.patience_with_one() * u32::try_from(hosts).unwrap_or(1) + GREETING
    }

    /// A new connection to the first host that will do.
    pub async fn connect(&self) -> Result<(Client, Unreplicated), ConnectError> {
        let mut last = ConnectError::Silent;
        for host in &self.hosts {
            match tokio::time::timeout(self.patience_with_one(), self.connect_to(host)).await {
                Ok(Ok(connected)) => return Ok(connected),
                Ok(Err(error)) => last = error.into(),
                Err(_) => last = ConnectError::Silent,
            }
        }
        Err(last)
    }

    async fn connect_to(
        &self,
        host: &Config,
    ) -> Result<(Client, Unreplicated), tokio_postgres::Error> {
        match &self.tls {
            None => {
                let (client, connection) = host.connect(NoTls).await?;
                Ok((client, hosts::drive(connection)))
            }
            Some(tls) => {
                let (client, connection) = host.connect(tls.clone()).await?;
                Ok((client, hosts::drive(connection)))
            }
        }
    }

    /// A session that is set up, in a database that has the extension.
    async fn open(&self) -> Result<Connection, ConnectError> {
        let (client, unreplicated) = self.connect().await?;
        // Behind a pooler a setting would stay on somebody else's session; TimeZone alone is carried along by it.
        client
            .batch_execute(if self.prepare {
                "SET TimeZone = 'UTC'; SET statement_timeout = '10s'"
            } else {
                "SET TimeZone = 'UTC'"
            })
            .await?;
        let found = client
            .query_typed_opt(
                "SELECT quote_ident(n.nspname) FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'kslate'",
                &[],
            )
            .await?;
        let schema = found.ok_or(ConnectError::NoExtension)?.try_get(0)?;
        let kept = self.prepare.then(HashMap::new);
        Ok(Connection {
            client,
            schema,
            kept,
            sound: true,
            unreplicated,
            answered: Instant::now(),
        })
    }

    /// Whether a session that has rested still leads where it did: a demoted primary answers reads for days.
    async fn asked_again(&self, connection: &mut Connection) -> RecycleResult<ConnectError> {
        let row = connection
            .client
            .query_typed("SELECT pg_catalog.pg_is_in_recovery()", &[])
            .await
            .map_err(ConnectError::from)?;
        let standby = row
            .first()
            .and_then(|row| row.try_get(0).ok())
            .unwrap_or(true);
        if standby && self.config.get_target_session_attrs() == TargetSessionAttrs::ReadWrite {
            return Err(RecycleError::message("no longer the primary"));
        }
        connection.answered();
        Ok(())
    }
}

/// Takes the two parameters out of a `postgresql://` address that tokio-postgres does not know (it has fewer modes), and gives
/// each host of `?host=a,b` a parameter of its own: there it takes the list for one name.
fn take_tls(url: &str) -> (String, Option<String>, Option<String>) {
    let (mut mode, mut root) = (None, None);
    let Some((base, query)) = url.split_once('?').filter(|(base, _)| base.contains("://")) else {
        return (url.to_owned(), mode, root);
    };
    let kept: Vec<String> = query
        .split('&')
        .flat_map(|pair| match pair.strip_prefix("host=") {
            Some(list) => list
                .replace("%2C", ",")
                .split(',')
                .map(|host| format!("host={host}"))
                .collect(),
            None => vec![pair.to_owned()],
        })
        .filter(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = percent_encoding::percent_decode_str(value)
                .decode_utf8_lossy()
                .into_owned();
            match name {
                "sslmode" => mode = Some(value),
                "sslrootcert" => root = Some(value),
                _ => return true,
            }
            false
        })
        .collect();
    let url = if kept.is_empty() {
        base.to_owned()
    } else {
        format!("{base}?{}", kept.join("&"))
    };
    (url, mode, root)
}

/// An error with all its causes: tokio-postgres' own text is only "db error".
pub fn because(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        text.push_str(": ");
        text.push_str(&deeper.to_string());
        cause = deeper.source();
    }
    text
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn verified(root: &str) -> Result<MakeRustlsConnect, TargetError> {
    let wrong = |error: &dyn fmt::Display| TargetError(format!("sslrootcert {root}: {error}"));
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(root).map_err(|error| wrong(&error))? {
        let certificate = certificate.map_err(|error| wrong(&error))?;
        roots.add(certificate).map_err(|error| wrong(&error))?;
    }
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(&error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

/// `prefer` and `require` mean in libpq that the line is encrypted, to whomever it leads.
fn unverified() -> Result<MakeRustlsConnect, TargetError> {
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| TargetError(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anyone(provider())))
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _chain: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Why there is no connection.
#[derive(Debug)]
pub enum ConnectError {
    /// The server, or the way to it.
    Database(tokio_postgres::Error),
    /// A host that can be reached and does not say a word.
    Silent,
    /// The extension is not in this database.
    NoExtension,
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Database(error) => f.write_str(&because(error)),
            Self::Silent => f.write_str("the database took the connection and said nothing in time"),
            Self::NoExtension => f.write_str("the extension kslate is not in this database: CREATE EXTENSION kslate; SELECT kslate_setup()"),
        }
    }
}

impl std::error::Error for ConnectError {}

impl From<tokio_postgres::Error> for ConnectError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error)
    }
}

/// A pooled connection.
pub struct Connection {
    /// The session.
    pub client: Client,
    /// Schema of the extension's functions, quoted.
    pub schema: String,
    /// Statements kept in the session, by their text; None where none may be kept.
    pub kept: Option<HashMap<&'static str, Statement>>,
    /// False while a call is under way, and for good after one that cast doubt on the session.
    pub sound: bool,
    /// Looked at after each call: what it was answered may not be true of the standby.
    pub unreplicated: Unreplicated,
    answered: Instant,
}

impl Connection {
    /// A call went well, or as well as a refusal goes.
    pub fn answered(&mut self) {
        self.sound = true;
        self.answered = Instant::now();
    }
}

impl Manager for Target {
    /// Boxed: the pool moves it half a dozen times a request.
    type Type = Box<Connection>;
    type Error = ConnectError;

    // Boxed too, as below: a request that waits for a connection would else be as large as a whole login, and be copied with it.
    async fn create(&self) -> Result<Box<Connection>, ConnectError> {
        Box::pin(self.open()).await.map(Box::new)
    }

    async fn recycle(
        &self,
        connection: &mut Box<Connection>,
        _: &Metrics,
    ) -> RecycleResult<ConnectError> {
        if !connection.sound || connection.client.is_closed() {
            return Err(RecycleError::message("no longer sound"));
        }
        if connection.answered.elapsed() < TRUSTED_FOR {
            return Ok(());
        }
        Box::pin(self.asked_again(connection)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio_postgres::config::Host;

    #[test]
    fn addresses() {
        for good in [
            "postgresql:///kslate?host=/run/kslate&user=kslate_server",
            "postgresql://u:p@db-1:5432,db-2:5432/kslate?target_session_attrs=read-write",
            "postgres://u@db/kslate?sslmode=disable",
            "postgres://u@db/kslate?sslmode=require&application_name=x",
            "host=/run/kslate user=kslate dbname=kslate",
            "host=db sslmode=disable",
        ] {
            assert!(Target::read(good, true).is_ok(), "{good}");
        }
        for (bad, word) in [
            ("postgres://u@db/kslate?sslmode=verify-full", "sslrootcert"),
            (
                "postgres://u@db/kslate?sslmode=verify-full&sslrootcert=/nowhere.pem",
                "/nowhere.pem",
            ),
            ("postgres://u@db/kslate?sslmode=yes", "sslmode"),
            ("postgres://u:hunter2@db:port/kslate", "invalid"),
            ("host=db sslmode=verify-full", "sslmode"),
        ] {
            let error = Target::read(bad, true).err().map(|error| error.to_string());
            let error = error.unwrap_or_else(|| panic!("{bad} was accepted"));
            assert!(
                error.contains(word) && !error.contains("hunter2"),
                "{bad}: {error}"
            );
        }
        assert_eq!(
            Target::read("postgres://u@db/k?sslmode=disable", true)
                .expect("good")
                .config
                .get_ssl_mode(),
            SslMode::Disable
        );
        let three = Target::read("postgres://u@a,b,c/k?connect_timeout=3", true).expect("good");
        assert_eq!(three.patience(), Duration::from_secs(13));
        for two in [
            "postgresql:///k?host=/run/a,/run/b&port=1,2&user=u",
            "postgresql:///k?host=%2Frun%2Fa%2C%2Frun%2Fb&user=u",
            "postgresql:///k?host=/run/a&host=/run/b&user=u",
            "host=/run/a,/run/b user=u",
        ] {
            let two = Target::read(two, true).expect("good");
            let hosts = ["/run/a", "/run/b"].map(|path| Host::Unix(path.into()));
            assert_eq!(two.config.get_hosts(), hosts);
        }
    }
}
