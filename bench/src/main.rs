//! Does one thing a given number of times, for something outside to count what it costs.
//!
//! usage: `mcp-edge-bench CASE TIMES`
//!
//! `scripts/budgets` runs each case under callgrind with two numbers of times: the difference is the
//! cost of the repetitions alone, without what it takes to get there.

mod calls;
mod platform;
mod reference;
mod sealing;
mod server;
mod socket;
mod wire;

use std::{
    error::Error,
    pin::pin,
    process::ExitCode,
    task::{Context, Poll, Waker},
};

type Result<T = ()> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mcp-edge-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result {
    let mut arguments = std::env::args().skip(1);
    let (Some(case), Some(times)) = (arguments.next(), arguments.next()) else {
        return Err("usage: mcp-edge-bench CASE TIMES".into());
    };
    let times = times.parse()?;
    match case.as_str() {
        "plain" => calls::plain(times, 20, false),
        "validated" => calls::plain(times, 20, true),
        "tools-1000" => calls::plain(times, 1000, false),
        "args-4k" => calls::long_argument(times, 4 << 10),
        "args-64k" => calls::long_argument(times, 64 << 10),
        "replay-1" => calls::replay(times, 1),
        "replay-10" => calls::replay(times, 10),
        "replay-100" => calls::replay(times, 100),
        "seal-200" => sealing::seal(times, 200),
        "seal-8k" => sealing::seal(times, 8 << 10),
        "open-200" => sealing::open(times, 200),
        "open-8k" => sealing::open(times, 8 << 10),
        "wire-bare" => wire::bare(times),
        "wire-core" => wire::core(times),
        "socket-bare" => socket::bare(times),
        "socket-core" => socket::core(times),
        "client" => socket::client(times, &arguments.next().ok_or("no address")?),
        _ => Err(format!("there is no case `{case}`").into()),
    }
}

/// The output of a future that has nothing to wait for.
fn now<F: Future>(future: F) -> Result<F::Output> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Ok(output),
        Poll::Pending => Err("a future waits that should be done at once".into()),
    }
}
