//! Reaching the database: its hosts in turn, and the connection's driver.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::config::{Host, LoadBalanceHosts};
use tokio_postgres::{AsyncMessage, Config, Connection};

use super::connect::because;

/// The same address once for each of its hosts.
///
/// tokio-postgres asks several hosts in turn as well, but bounds only how long it takes to reach one: a host that takes the
/// connection and then says nothing, a stopped primary, would keep those behind it from ever being asked.
pub fn each(config: &Config) -> Vec<Config> {
    let (hosts, addresses, ports) = (
        config.get_hosts(),
        config.get_hostaddrs(),
        config.get_ports(),
    );
    let count = hosts.len().max(addresses.len());
    let fits = |length: usize| length <= 1 || length == count;
    if count < 2
        || !fits(ports.len())
        || (!hosts.is_empty() && hosts.len() != count)
        || (!addresses.is_empty() && addresses.len() != count)
        || config.get_load_balance_hosts() == LoadBalanceHosts::Random
    {
        return vec![config.clone()];
    }
    (0..count)
        .map(|number| {
            let mut one = without_hosts(config);
            match hosts.get(number) {
                Some(Host::Tcp(name)) => drop(one.host(name)),
                Some(Host::Unix(path)) => drop(one.host_path(path)),
                None => {}
            }
            if let Some(address) = addresses.get(number) {
                one.hostaddr(*address);
            }
            if let Some(port) = ports.get(number).or_else(|| ports.first()) {
                one.port(*port);
            }
            one
        })
        .collect()
}

fn without_hosts(config: &Config) -> Config {
    let mut copy = Config::new();
    if let Some(user) = config.get_user() {
        copy.user(user);
    }
    if let Some(password) = config.get_password() {
        copy.password(password);
    }
    if let Some(dbname) = config.get_dbname() {
        copy.dbname(dbname);
    }
    if let Some(options) = config.get_options() {
        copy.options(options);
    }
    if let Some(name) = config.get_application_name() {
        copy.application_name(name);
    }
    if let Some(limit) = config.get_connect_timeout() {
        copy.connect_timeout(*limit);
    }
    if let Some(limit) = config.get_tcp_user_timeout() {
        copy.tcp_user_timeout(*limit);
    }
    if let Some(interval) = config.get_keepalives_interval() {
        copy.keepalives_interval(interval);
    }
    if let Some(retries) = config.get_keepalives_retries() {
        copy.keepalives_retries(retries);
    }
    copy.keepalives(config.get_keepalives())
        .keepalives_idle(config.get_keepalives_idle())
        .ssl_mode(config.get_ssl_mode())
        .ssl_negotiation(config.get_ssl_negotiation())
        .channel_binding(config.get_channel_binding())
        .target_session_attrs(config.get_target_session_attrs());
    copy
}

/// Whether a commit on this connection was given up before the synchronous standby had it. The commit stands and is seen, and
/// PostgreSQL answers as if all was well: only a warning before the answer tells.
#[derive(Debug, Clone, Default)]
pub struct Unreplicated(Arc<AtomicBool>);

impl Unreplicated {
    /// Has it happened?
    pub fn happened(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Runs a connection in the background until it ends.
pub fn drive<S, T>(mut connection: Connection<S, T>) -> Unreplicated
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let unreplicated = Unreplicated::default();
    let told = unreplicated.clone();
    tokio::spawn(async move {
        while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
            match message {
                // By its place in PostgreSQL's source: the text is translated, the code is that of any warning.
                Ok(AsyncMessage::Notice(notice))
                    if notice.routine() == Some("SyncRepWaitForLSN") =>
                {
                    tracing::warn!(notice = notice.message(), "a commit is not replicated");
                    told.0.store(true, Ordering::Release);
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(error = %because(&error), "lost a connection to the database");
                    break;
                }
            }
        }
    });
    unreplicated
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(address: &str) -> Config {
        address.parse().expect("a good address")
    }

    #[test]
    fn an_address_for_each_host() {
        let whole = read(
            "postgresql://u:p@a:1,b:2/k?host=/run/c&port=3&target_session_attrs=read-write&connect_timeout=3\
             &application_name=x&options=-cgeqo%3Doff&keepalives_idle=5&tcp_user_timeout=7&channel_binding=disable",
        );
        let each = each(&whole);
        let hosts: Vec<_> = each.iter().map(|one| one.get_hosts().to_vec()).collect();
        assert_eq!(
            hosts,
            [
                vec![Host::Tcp("a".into())],
                vec![Host::Tcp("b".into())],
                vec![Host::Unix("/run/c".into())]
            ]
        );
        let ports: Vec<_> = each.iter().flat_map(|one| one.get_ports()).collect();
        assert_eq!(ports, [&1, &2, &3]);
        // All else is the same: what was added to the whole one and forgotten here would show.
        let mut again = each[0].clone();
        again.host("b").host_path("/run/c").port(2).port(3);
        assert_eq!(again, whole);
    }

    #[test]
    fn what_is_one_host_or_none_of_our_business_stays_whole() {
        for address in [
            "postgresql://u@a/k",
            "postgresql:///k?host=/run/kslate",
            "postgresql://u@a,b/k?load_balance_hosts=random",
            "host=a,b hostaddr=127.0.0.1",
            "host=a,b port=1,2,3",
        ] {
            assert_eq!(each(&read(address)), [read(address)], "{address}");
        }
    }
}
