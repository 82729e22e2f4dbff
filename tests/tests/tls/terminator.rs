//! TLS in front of a PostgreSQL that was built without it, as those from PyPI are.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::io::{copy_bidirectional, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::TlsAcceptor;

const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// Listens on those addresses and passes what comes encrypted on to the socket in a folder; whoever does not ask for TLS is
/// turned away as pg_hba.conf would. It goes with the test's process.
pub fn listen(addresses: [Ipv4Addr; 2], socket: &str, certificate: &str, key: &str) {
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).expect("PEM");
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("PEM");
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions of TLS")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("a key that fits");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let socket = PathBuf::from(socket).join(".s.PGSQL.5432");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    for address in addresses {
        let listener = runtime
            .block_on(TcpListener::bind(SocketAddr::from((address, 5432))))
            .expect("an address of our own");
        let (acceptor, socket) = (acceptor.clone(), socket.clone());
        runtime.spawn(async move {
            while let Ok((caller, _)) = listener.accept().await {
                tokio::spawn(serve(caller, acceptor.clone(), socket.clone()));
            }
        });
    }
    std::mem::forget(runtime);
}

async fn serve(mut caller: TcpStream, tls: TlsAcceptor, socket: PathBuf) -> std::io::Result<()> {
    let mut first = [0; 8];
    caller.read_exact(&mut first).await?;
    if first != SSL_REQUEST {
        let fields = b"SFATAL\0C28000\0Mno pg_hba.conf entry for this host, no encryption\0\0";
        let length = u32::try_from(fields.len() + 4).unwrap_or_default();
        caller.write_all(b"E").await?;
        caller.write_all(&length.to_be_bytes()).await?;
        return caller.write_all(fields).await;
    }
    caller.write_all(b"S").await?;
    let mut caller = tls.accept(caller).await?;
    let mut called = UnixStream::connect(socket).await?;
    copy_bidirectional(&mut caller, &mut called).await?;
    Ok(())
}
