//! SQLite through sqlx: opening, one writer, a reader pool, and the one translation of database
//! errors. Knows no table of any zone; its own table keeps the clock's high-water mark.

use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::time::Duration;

use exequatur_clock::{Clock, UnixMillis};
use exequatur_fault::{Fault, Reason};
use sqlx::SqlSafeStr as _;
pub use sqlx::migrate::Migrator;
use sqlx::migrate::{Migration, MigrationType};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{Connection as _, Sqlite, SqliteConnection, Transaction};

/// A zone's migrations from its files: version, name, SQL. Forward only. Without the driver's macros,
/// which would build the database a second time for the compiler's sake.
#[must_use]
pub fn migrations(files: &[(i64, &'static str, &'static str)]) -> Migrator {
    let one = |(version, name, sql): &(i64, &'static str, &'static str)| {
        Migration::new(*version, (*name).into(), MigrationType::Simple, (*sql).into_sql_str(), false)
    };
    Migrator::with_migrations(files.iter().map(one).collect())
}

/// How long a caller waits for the writer or a busy database.
const BUSY: Duration = Duration::from_secs(10);
const READERS: u32 = 4;

/// A zone's database; clones share it.
#[derive(Clone)]
pub struct Store {
    writer: SqlitePool,
    reader: SqlitePool,
    clock: Clock,
}

impl Store {
    /// Opens or creates the database, applies the zone's migrations and starts its clock.
    ///
    /// # Errors
    /// `STORAGE_FAILED`.
    pub async fn open(path: &Path, migrations: &Migrator) -> Result<Self, Fault> {
        Self::open_with(path, migrations, Clock::start).await
    }

    /// The same with a clock of the caller's choice, for tests; it gets the stored mark.
    ///
    /// # Errors
    /// `STORAGE_FAILED`.
    pub async fn open_with(
        path: &Path,
        migrations: &Migrator,
        clock: impl FnOnce(Option<UnixMillis>) -> Clock,
    ) -> Result<Self, Fault> {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(BUSY);
        let writer = SqlitePoolOptions::new()
            .max_connections(1)
            .acquire_timeout(BUSY)
            // A full disk makes SQLite roll back by itself, which the driver does not see: such a
            // connection would refuse every later transaction. It is replaced by a fresh one.
            .before_acquire(|connection, _| {
                let usable = !connection.is_in_transaction();
                Box::pin(async move { Ok(usable) })
            })
            .connect_with(options.clone())
            .await
            .map_err(fault)?;
        migrations.run(&writer).await.map_err(|e| {
            Fault::new(Reason::StorageFailed, "the database cannot be migrated").retryable(false).caused_by(e)
        })?;
        sqlx::query("CREATE TABLE IF NOT EXISTS clock_mark (one INTEGER PRIMARY KEY CHECK (one = 1), at INTEGER NOT NULL)")
            .execute(&writer)
            .await
            .map_err(fault)?;
        let mark: Option<i64> =
            sqlx::query_scalar("SELECT at FROM clock_mark").fetch_optional(&writer).await.map_err(fault)?;
        let reader = SqlitePoolOptions::new()
            .max_connections(READERS)
            .acquire_timeout(BUSY)
            .connect_with(options.read_only(true))
            .await
            .map_err(fault)?;
        Ok(Self { writer, reader, clock: clock(mark.map(UnixMillis)) })
    }

    /// The zone's clock; its mark lives in this database.
    #[must_use]
    pub const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Connections that can only read.
    #[must_use]
    pub const fn reader(&self) -> &SqlitePool {
        &self.reader
    }

    /// Starts a write: waits for the one writer, `BEGIN IMMEDIATE`, and reads the clock.
    ///
    /// # Errors
    /// `CLOCK_UNTRUSTED`, `CONFLICT` or `STORAGE_FAILED`; nothing was written.
    pub async fn begin(&self) -> Result<Tx, Fault> {
        let inner = self.writer.begin_with("BEGIN IMMEDIATE").await.map_err(fault)?;
        let now = self.clock.now()?;
        Ok(Tx { inner, now })
    }

    /// Starts a write that has no time and leaves the clock's mark alone: for what must work while the clock
    /// is not trusted, such as the schema.
    ///
    /// # Errors
    /// `CONFLICT` or `STORAGE_FAILED`; nothing was written.
    pub async fn begin_untimed(&self) -> Result<Tx, Fault> {
        self.begin_at(UnixMillis(0)).await
    }

    /// Starts a write at a time that the caller vouches for: only to record that a clock was acknowledged.
    ///
    /// # Errors
    /// As [`Store::begin`].
    pub async fn begin_at(&self, now: UnixMillis) -> Result<Tx, Fault> {
        Ok(Tx { inner: self.writer.begin_with("BEGIN IMMEDIATE").await.map_err(fault)?, now })
    }
}

/// One write transaction; rolls back when dropped.
pub struct Tx {
    inner: Transaction<'static, Sqlite>,
    now: UnixMillis,
}

impl Tx {
    /// The one time of this transaction.
    #[must_use]
    pub const fn now(&self) -> UnixMillis {
        self.now
    }

    /// Makes everything durable, with the clock's mark.
    ///
    /// # Errors
    /// `STORAGE_FAILED`: nothing was written.
    pub async fn commit(mut self) -> Result<(), Fault> {
        // A mark at the epoch would make the next start look like a jump.
        if self.now > UnixMillis(0) {
            sqlx::query(
                "INSERT INTO clock_mark (one, at) VALUES (1, ?) ON CONFLICT (one) DO UPDATE SET at = max(at, excluded.at)",
            )
            .bind(self.now.0)
            .execute(&mut *self.inner)
            .await
            .map_err(fault)?;
        }
        self.inner.commit().await.map_err(fault)
    }
}

impl Deref for Tx {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        &self.inner
    }
}

impl DerefMut for Tx {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        &mut self.inner
    }
}

/// Whether a write failed because its key is already there.
#[must_use]
pub fn is_unique_violation(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(sqlx::error::DatabaseError::is_unique_violation)
}

/// The one translation of database errors.
#[must_use]
pub fn fault(error: sqlx::Error) -> Fault {
    let code = error.as_database_error().and_then(|e| e.code()).map(|c| c.into_owned()).unwrap_or_default();
    // Extended result codes keep the primary one in their low byte (sqlite.org/rescode.html).
    let primary = code.parse::<u32>().map_or(0, |code| code & 0xff);
    match primary {
        5 | 6 => Fault::new(Reason::Conflict, "the store is busy; try again").caused_by(error),
        10 | 13 => Fault::new(Reason::StorageFailed, "the store cannot be written; free space and try again")
            .caused_by(error),
        _ if matches!(error, sqlx::Error::PoolTimedOut) => {
            Fault::new(Reason::Conflict, "the store is busy; try again").caused_by(error)
        }
        _ => Fault::new(Reason::StorageFailed, "the store failed; see the service's log").caused_by(error),
    }
}
