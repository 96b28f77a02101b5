//! The store, and how to connect to it.

use std::{fmt, sync::Arc};

use mcp_edge::Timestamp;
use tokio::time::timeout;
use tokio_postgres::{
    Config, NoTls, Socket,
    config::TargetSessionAttrs,
    tls::{MakeTlsConnect, TlsConnect},
};

use crate::{
    connector::Connector,
    error::{ConnectError, Fault},
    listening::Listening,
    options::PostgresOptions,
    pool::Pool,
    schema,
};

/// Tasks, messages, spent ids and news in one PostgreSQL database; clones are the same store. See the
/// [crate docs](crate).
///
/// A connection that is lost fails the operation that used it; the next one opens another. Moments
/// are kept in 63 bits: what lies after the year 292,278,994 is kept as that.
#[derive(Clone)]
pub struct PostgresStore {
    pub(crate) pool: Arc<Pool>,
    pub(crate) listening: Arc<Listening>,
    schema: String,
}

impl PostgresStore {
    /// Connects without TLS and with the default options; makes the tables, or brings them up to
    /// date. The URL is `postgres://user:password@host:port/database`, or what else
    /// [`Config`] reads.
    ///
    /// # Errors
    /// When the URL cannot be read, the database cannot be reached, the tables cannot be made, or they
    /// are newer than this build.
    pub async fn connect(url: &str) -> Result<Self, ConnectError> {
        let config = url.parse().map_err(|_| ConnectError::InvalidUrl)?;
        Self::connect_with(config, NoTls, PostgresOptions::default()).await
    }

    /// Connects with a connector for TLS (or [`NoTls`]) and with options; makes the tables, or brings
    /// them up to date.
    ///
    /// # Errors
    /// When the database cannot be reached, the tables cannot be made, they are newer than this
    /// build, or the options name an impossible schema.
    pub async fn connect_with<T>(
        mut config: Config,
        tls: T,
        options: PostgresOptions,
    ) -> Result<Self, ConnectError>
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::Stream: Send,
        T::TlsConnect: Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        schema::check_name(&options.schema)?;
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        if config.get_application_name().is_none() {
            config.application_name("mcp-edge");
        }
        if config.get_connect_timeout().is_none() {
            // Half, so that a second host gets its turn.
            config.connect_timeout(options.time_limit / 2);
        }

        let connector = Arc::new(Connector::new(config, tls));
        let pool = Arc::new(Pool::new(Arc::clone(&connector), &options));
        let mut session = timeout(options.time_limit, pool.open())
            .await
            .map_err(|_| Fault::too_slow(options.time_limit))?
            .map_err(Fault::from)?;
        schema::migrate(&mut session.client, &options.schema).await?;
        let listening = Listening::new(connector, Arc::clone(&pool), &options.schema);
        Ok(Self { pool, listening: Arc::new(listening), schema: options.schema })
    }
}

impl fmt::Debug for PostgresStore {
    /// Shows nothing of the connection, which has a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("schema", &self.schema).finish_non_exhaustive()
    }
}

/// A moment as it is kept.
pub(crate) fn millis(moment: Timestamp) -> i64 {
    i64::try_from(moment.as_millis()).unwrap_or(i64::MAX)
}
