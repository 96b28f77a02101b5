//! Why a file is not a store.

use std::{error::Error, fmt, io, path::PathBuf};

/// Why [`SqliteStore::open`](crate::SqliteStore::open) did not open a file.
#[derive(Debug)]
#[non_exhaustive]
pub enum SqliteError {
    /// The file is an SQLite database of something else.
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file was made, or brought up to date, by a newer version of this crate.
    Newer {
        /// The file.
        path: PathBuf,
        /// The version of its schema.
        found: i64,
        /// The newest version that is known here.
        known: i64,
    },
    /// Several connections cannot share it: it is in memory, or on a file system without locks.
    NotShared {
        /// The file.
        path: PathBuf,
    },
    /// The system gives no thread.
    Thread(io::Error),
    /// The file cannot be read or written, or is no database at all.
    Unusable {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl fmt::Display for SqliteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign { path } => write!(
                f,
                "{} is a database of something else; name a file that does not exist yet",
                path.display()
            ),
            Self::Newer { path, found, known } => write!(
                f,
                "{} has schema {found} and this version of mcp-edge-hyper knows {known} at most; \
                 update this program, or name another file",
                path.display()
            ),
            Self::NotShared { path } => write!(
                f,
                "{:?} cannot be shared by several connections; name a file on a disk of this host, \
                 or use `MemoryStore`",
                path.display().to_string()
            ),
            Self::Thread(_) => f.write_str("the system gives no thread for SQLite"),
            Self::Unusable { path, .. } => write!(
                f,
                "{} cannot be used as a store; its folder must exist, and this process must be \
                 allowed to write both",
                path.display()
            ),
        }
    }
}

impl Error for SqliteError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Thread(error) => Some(error),
            Self::Unusable { source, .. } => Some(&**source),
            Self::Foreign { .. } | Self::Newer { .. } | Self::NotShared { .. } => None,
        }
    }
}
