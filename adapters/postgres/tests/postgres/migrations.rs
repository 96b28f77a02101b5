//! How the tables come about.

use mcp_edge::{
    Change, ChangeFeed as _, Created, DueIndex as _, Mailbox as _, ReplayGuard as _, TaskStore as _,
};
use mcp_edge_postgres::{
    ConnectError, PostgresOptions, PostgresStore,
    tokio_postgres::{Config, NoTls},
};

use crate::support::{NOW, SECOND, at_once, task, with_database};

#[test]
fn several_instances_may_start_at_once() {
    with_database(async |database| {
        let stores = at_once(8, |_| {
            let (config, options) = (database.config(), database.options());
            async move { PostgresStore::connect_with(config, NoTls, options).await.unwrap() }
        });
        for store in stores.await {
            store.get("a", NOW).await.unwrap();
        }
        let sql = "SELECT version FROM migrations";
        let rows = database.admin().await.query(sql, &[]).await.unwrap();
        let versions: Vec<i32> = rows.iter().map(|row| row.get(0)).collect();
        assert_eq!(versions, [1]);
    });
}

#[test]
fn what_is_there_stays() {
    with_database(async |database| {
        database.store().await.create(&task("a", "me"), 1, NOW).await.unwrap();
        let kept = database.store().await.get("a", NOW).await.unwrap();
        assert_eq!(kept, Some(task("a", "me")));
    });
}

#[test]
fn a_newer_schema_is_refused() {
    with_database(async |database| {
        database.store().await;
        let admin = database.admin().await;
        admin.batch_execute("INSERT INTO migrations (version) VALUES (99)").await.unwrap();
        let error = database.connect().await.unwrap_err();
        let ConnectError::NewerSchema { schema, found: 99, known: 1 } = &error else {
            panic!("{error}");
        };
        assert_eq!(*schema, database.schema);
        assert!(error.to_string().contains("deploy the later version"), "{error}");
    });
}

#[test]
fn a_failed_migration_leaves_nothing() {
    with_database(async |database| {
        let admin = database.admin().await;
        let (schema, table) = (&database.schema, "CREATE TABLE spent (mine text)");
        admin.batch_execute(&format!("CREATE SCHEMA {schema}; {table}")).await.unwrap();
        let error = database.connect().await.unwrap_err();
        assert!(error.to_string().contains("\"spent\" already exists"), "{error}");
        let sql = "SELECT count(*) FROM pg_tables WHERE schemaname = $1";
        assert_eq!(admin.query_one(sql, &[schema]).await.unwrap().get::<_, i64>(0), 1);
        admin.batch_execute("DROP TABLE spent").await.unwrap();
        database.store().await;
    });
}

#[test]
fn a_role_that_may_create_nothing_can_use_the_store() {
    with_database(async |database| {
        let (schema, admin) = (&database.schema, database.admin().await);
        let role = format!("{schema}_role");
        admin.batch_execute(&format!("CREATE ROLE {role} LOGIN")).await.unwrap();
        let mut config = database.config();
        config.user(&role);
        let connect = || PostgresStore::connect_with(config.clone(), NoTls, database.options());

        let error = connect().await.unwrap_err().to_string();
        assert!(error.contains("permission denied for database"), "{error}");
        database.store().await;
        let grants = format!(
            "GRANT USAGE ON SCHEMA {schema} TO {role}; \
             GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role};"
        );
        admin.batch_execute(&grants).await.unwrap();
        let (store, end) = (connect().await.unwrap(), NOW + SECOND);
        assert_eq!(store.create(&task("a", "me"), 1, NOW).await.unwrap(), Created::Created);
        assert!(store.update(&task("a", "me"), NOW).await.unwrap());
        assert_eq!(store.claim_due(NOW, end, 1).await.unwrap(), ["a"]);
        assert_eq!(store.purge(NOW, 1).await.unwrap(), 0);
        assert!(store.put_once("a", b"", end, NOW).await.unwrap());
        assert!(store.take("a", NOW).await.unwrap().is_some());
        assert!(store.spend("a", end, NOW).await.unwrap());
        store.publish(None, Change::Tools).await.unwrap();
        store.publish(None, Change::resource("x".repeat(9000))).await.unwrap();

        let remove = format!("DROP OWNED BY {role}; DROP ROLE {role}");
        admin.batch_execute(&remove).await.unwrap();
    });
}

#[tokio::test]
async fn a_schema_has_a_plain_name() {
    for name in ["", "1a", "A", "a-b", "a\"b", "a b", "é", &"a".repeat(41)] {
        let options = PostgresOptions::default().schema(name);
        let store = PostgresStore::connect_with(Config::new(), NoTls, options).await;
        let error = store.unwrap_err();
        assert!(matches!(error, ConnectError::InvalidSchemaName(_)), "{name}: {error}");
    }
}
