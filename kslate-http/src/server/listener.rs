//! Connections from clients: bounded in number and in patience, and let finish at the end.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::poll_again::PollAgain;

/// Time for a request's head, and so also the longest rest between two requests of a connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for what is under way when the server is told to stop.
const LAST_ANSWERS: Duration = Duration::from_secs(10);
/// Most bytes of a request's head.
const HEAD_LIMIT: usize = 64 * 1024;

/// Serves `router` until `stop`, on at most `connections` connections at once; more wait in the system's queue.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    connections: usize,
    stop: impl Future<Output = ()>,
) {
    let slots = Arc::new(Semaphore::new(connections));
    let graceful = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    // Without a timer hyper has no time-outs at all.
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_LIMIT);

    tokio::pin!(stop);
    loop {
        let accepted = async {
            let slot = Arc::clone(&slots).acquire_owned().await;
            (slot, listener.accept().await)
        };
        let (slot, accepted) = tokio::select! {
            () = &mut stop => break,
            accepted = accepted => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of descriptors, mostly: accepting again at once would only burn the processor.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "cannot set TCP_NODELAY");
        }
        let connection = http.serve_connection(
            TokioIo::new(stream),
            TowerToHyperService::new(router.clone()),
        );
        let connection = PollAgain::of(graceful.watch(connection));
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended in disorder");
            }
            drop(slot);
        });
    }
    drop(listener);
    tracing::info!("stopping: no new requests");
    if tokio::time::timeout(LAST_ANSWERS, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("stopped with requests under way");
    }
}
