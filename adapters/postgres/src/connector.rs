//! Opens connections, whatever they are encrypted with.

use futures_util::{StreamExt as _, stream};
use mcp_edge::{BoxFuture, BoxStream};
use tokio_postgres::{
    AsyncMessage, Client, Config, Socket,
    tls::{MakeTlsConnect, TlsConnect},
};

/// What a connection is told unasked. Reading this is also what moves the connection's requests.
pub(crate) type Messages = BoxStream<'static, Result<AsyncMessage, tokio_postgres::Error>>;

type Opened = Result<(Client, Messages), tokio_postgres::Error>;

/// Opens connections to one database.
pub(crate) struct Connector {
    open: Box<dyn Fn() -> BoxFuture<'static, Opened> + Send + Sync>,
}

impl Connector {
    pub(crate) fn new<T>(config: Config, tls: T) -> Self
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::Stream: Send,
        T::TlsConnect: Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        Self {
            open: Box::new(move || {
                let (config, tls) = (config.clone(), tls.clone());
                Box::pin(async move {
                    let (client, mut connection) = config.connect(tls).await?;
                    let messages = stream::poll_fn(move |cx| connection.poll_message(cx));
                    Ok((client, messages.boxed()))
                })
            }),
        }
    }

    pub(crate) async fn open(&self) -> Opened {
        (self.open)().await
    }
}
