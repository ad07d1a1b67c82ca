// SPDX-License-Identifier: Apache-2.0
//! Counts runs, and says how many there were to who asks by HTTP: kube-rs has no metrics
//! of its own.

use std::sync::{
    atomic::{AtomicU64, Ordering},
    Arc,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// How many runs there were.
#[derive(Clone, Default)]
pub struct Runs(Arc<AtomicU64>);

impl Runs {
    /// Counts a run.
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Answers requests at an address.
pub async fn serve(runs: Runs, address: &str) -> std::io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            tokio::spawn(answer(connection, runs.clone()));
        }
    });
    Ok(())
}

/// Answers the requests of one connection, which fit into a packet each.
async fn answer(mut connection: TcpStream, runs: Runs) {
    let mut request = [0; 4096];
    while connection.read(&mut request).await.is_ok_and(|n| n > 0) {
        let total = runs.0.load(Ordering::Relaxed);
        let body = format!("controller_runtime_reconcile_total{{controller=\"peer\",result=\"success\"}} {total}\n");
        let response = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        if connection.write_all(response.as_bytes()).await.is_err() {
            return;
        }
    }
}
