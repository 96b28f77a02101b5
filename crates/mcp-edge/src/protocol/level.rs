//! How severe a log message is (LOG-07).

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// The severity of a log message, least first. Exhaustive: syslog (RFC 5424) fixes the eight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Details for finding faults.
    Debug,
    /// What happens anyway.
    Info,
    /// Normal and worth knowing.
    Notice,
    /// Something may go wrong.
    Warning,
    /// An operation failed.
    Error,
    /// A component failed.
    Critical,
    /// Somebody must act now.
    Alert,
    /// Nothing works.
    Emergency,
}

impl LogLevel {
    /// All levels, least severe first.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }
}

impl FromStr for LogLevel {
    type Err = UnknownLogLevel;

    fn from_str(name: &str) -> Result<Self, UnknownLogLevel> {
        Self::ALL.into_iter().find(|level| level.as_str() == name).ok_or(UnknownLogLevel(()))
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The text is not the name of a [`LogLevel`]; they are in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownLogLevel(());

impl fmt::Display for UnknownLogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown log level")
    }
}

impl std::error::Error for UnknownLogLevel {}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json, to_value};

    use super::*;

    #[test]
    fn levels_are_ordered_by_severity() {
        assert!(LogLevel::ALL.is_sorted());
        assert!(LogLevel::Warning < LogLevel::Error);
    }

    #[test]
    fn text_and_json_agree() {
        for level in LogLevel::ALL {
            assert_eq!(to_value(level).unwrap(), json!(level.to_string()));
            assert_eq!(from_value::<LogLevel>(json!(level.as_str())).unwrap(), level);
            assert_eq!(level.as_str().parse(), Ok(level));
        }
        for wrong in ["", "INFO", "warn", "fatal"] {
            wrong.parse::<LogLevel>().unwrap_err();
            from_value::<LogLevel>(json!(wrong)).unwrap_err();
        }
    }
}
