//! `cargo run -p mcp-edge-test --example fleet -- --port 3000 target/debug/everything-local`
//!
//! Runs a fleet of a program until ctrl-c, and prints its URL. `scripts/serve fleet` uses it.
#![allow(clippy::print_stdout, reason = "a program for the command line")]

use std::{env, error::Error, io, process::ExitCode};

use mcp_edge_test::{Fleet, Routing};

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let flags = Flags::parse(env::args().skip(1))?;
    // From here on, the end is orderly.
    let stopped = stopped()?;
    let mut fleet = Fleet::builder(&flags.program)
        .args(&flags.args)
        .port(flags.port)
        .instances(flags.instances)
        .routing(flags.routing);
    if flags.has_resident {
        fleet = fleet.resident(&flags.program, &flags.args);
    }
    let fleet = fleet.start().await.map_err(|error| match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    })?;
    println!("The fleet is served at {}; only programs on this machine reach it.", fleet.url());
    stopped.await;
    fleet.shutdown().await;
    Ok(())
}

/// What the command line says.
struct Flags {
    port: u16,
    instances: usize,
    routing: Routing,
    has_resident: bool,
    program: String,
    args: Vec<String>,
}

impl Flags {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut flags = Self {
            port: 3000,
            instances: 3,
            routing: Routing::Random { seed: 0 },
            has_resident: false,
            program: String::new(),
            args: Vec::new(),
        };
        while let Some(flag) = args.next() {
            let mut value = || args.next().ok_or_else(|| usage(&format!("{flag} needs a value")));
            match flag.as_str() {
                "--port" => flags.port = number(&flag, &value()?)?,
                "--instances" => flags.instances = number(&flag, &value()?)?,
                "--routing" => flags.routing = routing(&value()?)?,
                "--fresh" => flags.routing = Routing::Fresh,
                "--resident" => flags.has_resident = true,
                _ if flag.starts_with('-') => {
                    return Err(usage(&format!("there is no option {flag}")));
                }
                _ => {
                    flags.program = flag;
                    flags.args = args.collect();
                    return Ok(flags);
                }
            }
        }
        Err(usage("no program is given"))
    }
}

fn number<N: std::str::FromStr>(flag: &str, value: &str) -> Result<N, String> {
    value.parse().map_err(|_| usage(&format!("{flag} cannot be '{value}'")))
}

fn routing(name: &str) -> Result<Routing, String> {
    match name {
        "random" => Ok(Routing::Random { seed: 0 }),
        "round-robin" => Ok(Routing::RoundRobin),
        _ => Err(usage(&format!("there is no routing '{name}'"))),
    }
}

fn usage(fault: &str) -> String {
    format!(
        "{fault}; usage: fleet [--port N] [--instances N] [--routing random|round-robin] \
         [--fresh] [--resident] PROGRAM [ARG...]"
    )
}

/// Resolves when the process is told to stop.
#[cfg(unix)]
fn stopped() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Resolves when the process is told to stop.
#[cfg(not(unix))]
fn stopped() -> io::Result<impl Future<Output = ()>> {
    Ok(async {
        // An error leaves nothing to wait for.
        let _ = tokio::signal::ctrl_c().await;
    })
}
