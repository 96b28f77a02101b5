//! Requests over a loopback connection from a client in a process of its own, which callgrind does
//! not see.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    pin::Pin,
    process::Command,
};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use mcp_edge_hyper::{ServeOptions, serve_with};
use tokio::{net::TcpListener, sync::oneshot, task::spawn_blocking};

use crate::{Result, reference, server::server, wire};

/// Hyper that reads the body and answers fixed bytes.
pub(crate) fn bare(times: usize) -> Result {
    serve(times, async |listener, _client| {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let service = service_fn(wire::fixed);
        Ok(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await?)
    })
}

/// The whole adapter, as it is deployed.
pub(crate) fn core(times: usize) -> Result {
    let server = server(20, false)?;
    serve(times, async |listener, client| {
        serve_with(server, listener, ServeOptions::default(), client).await;
        Ok(())
    })
}

/// Runs a server beside its client, whose end it is told.
fn serve(
    times: usize,
    server: impl AsyncFnOnce(TcpListener, Pin<Box<dyn Future<Output = ()>>>) -> Result,
) -> Result {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let mut client = Command::new(std::env::current_exe()?)
            .args(["client", &times.to_string(), &listener.local_addr()?.to_string()])
            .spawn()?;
        let (ended, end) = oneshot::channel();
        let client = spawn_blocking(move || {
            let status = client.wait();
            let _ = ended.send(());
            status
        });
        server(listener, Box::pin(async { end.await.unwrap_or_default() })).await?;
        if client.await??.success() { Ok(()) } else { Err("the client failed".into()) }
    })
}

/// Sends the reference request to an address a number of times.
pub(crate) fn client(times: usize, address: &str) -> Result {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let request = reference::wire();
    let mut response = [0; 4096];
    for _ in 0..times {
        stream.write_all(request.as_bytes())?;
        let mut length = 0;
        while !response[..length].ends_with(reference::ANSWER.as_bytes()) {
            match stream.read(&mut response[length..])? {
                0 => return Err("the server closed the connection".into()),
                read => length += read,
            }
        }
    }
    Ok(())
}
