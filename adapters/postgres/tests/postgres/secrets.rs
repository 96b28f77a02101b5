//! A password is nowhere to be seen, and nothing is encrypted that is not said to be.

use mcp_edge_postgres::{
    ConnectError, PostgresStore,
    tokio_postgres::{NoTls, config::SslMode},
};

use crate::support::with_database;

#[test]
fn a_password_is_not_shown() {
    with_database(async |database| {
        let mut config = database.config();
        config.password("hunter2");
        let store = PostgresStore::connect_with(config, NoTls, database.options()).await.unwrap();
        let shown = format!("{store:?}");
        assert!(shown.contains(&database.schema) && !shown.contains("hunter2"), "{shown}");
    });
}

#[tokio::test]
async fn a_password_is_not_in_errors() {
    for (url, is_url) in [
        ("postgres://me:hunter2@127.0.0.1:1/db", true),
        ("postgres://me:hunter2@nowhere.invalid/db", true),
        ("postgres://me:hunter2@127.0.0.1:port/db", false),
        ("postgres://me:hunter2/rest@127.0.0.1:1/db", true),
        ("host=127.0.0.1 password=x hunter2", false),
    ] {
        let error = PostgresStore::connect(url).await.unwrap_err();
        assert_eq!(matches!(error, ConnectError::Failed(_)), is_url, "{url}: {error}");
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}

#[test]
fn encryption_that_is_asked_for_is_not_left_out() {
    with_database(async |database| {
        let mut config = database.config();
        config.ssl_mode(SslMode::Require);
        let store = PostgresStore::connect_with(config, NoTls, database.options()).await;
        let error = store.unwrap_err().to_string();
        assert!(error.contains("TLS"), "{error}");
    });
}
