//! Why there is no fleet.

use std::{error::Error, fmt, io, process::ExitStatus, time::Duration};

/// Why a fleet or one of its processes did not start.
#[derive(Debug)]
#[non_exhaustive]
pub enum FleetError {
    /// A fleet was to have no instances.
    Empty,
    /// A process ended, or closed its standard output, before it printed a URL.
    Ended {
        /// How it ended; `None` if it did not.
        status: Option<ExitStatus>,
        /// The last that it wrote to standard error.
        stderr: String,
    },
    /// The fleet has no instance of this index.
    NoInstance {
        /// The index.
        index: usize,
    },
    /// The proxy cannot listen.
    Proxy {
        /// What the system says.
        source: io::Error,
    },
    /// A process printed no URL in time.
    Silent {
        /// How long it had.
        limit: Duration,
        /// The last that it wrote to standard error.
        stderr: String,
    },
    /// The program cannot be run.
    Spawn {
        /// The program.
        program: String,
        /// What the system says.
        source: io::Error,
    },
}

impl fmt::Display for FleetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stderr = match self {
            Self::Empty => return f.write_str("a fleet needs an instance"),
            Self::NoInstance { index } => {
                return write!(f, "the fleet has no instance {index}");
            }
            Self::Proxy { .. } => return f.write_str("the proxy cannot listen"),
            Self::Spawn { program, .. } => return write!(f, "`{program}` cannot be run"),
            Self::Ended { status: Some(status), stderr } => {
                write!(f, "a process ended before it printed a URL: {status}")?;
                stderr
            }
            Self::Ended { status: None, stderr } => {
                f.write_str("a process closed its standard output before it printed a URL")?;
                stderr
            }
            Self::Silent { limit, stderr } => {
                write!(f, "a process printed no URL within {limit:?}")?;
                stderr
            }
        };
        if stderr.is_empty() {
            return f.write_str("; nothing is on its standard error");
        }
        write!(f, "; on its standard error:\n{stderr}")
    }
}

impl Error for FleetError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Proxy { source } | Self::Spawn { source, .. } => Some(source),
            Self::Empty | Self::Ended { .. } | Self::NoInstance { .. } | Self::Silent { .. } => {
                None
            }
        }
    }
}
