//! The snapshot of the database from which `pg_dump` and the list of files of a backup are made, so that they agree
//! while the service goes on.

use uuid::Uuid;

use super::files::FileOfOwner;
use super::{DedicatedConnection, Totals};
use crate::config::Config;
use crate::db::contents::RecordedContent;
use crate::db::sql;

/// The database as it was at one moment. As long as this exists, no other backup runs, and no content that the snapshot
/// names is removed: `sql/backup/pause_removals.sql` says why.
pub struct Snapshot {
    connection: DedicatedConnection,
    /// The id under which `pg_dump --snapshot` finds it.
    pub id: String,
    pub installation_id: Uuid,
    /// The number of the last applied migration.
    pub schema_version: i32,
    pub totals: Totals,
}

impl Snapshot {
    /// Takes the lock of backups, and then a snapshot. Fails if another backup holds the lock. On failure, here and
    /// below: what to tell the operator.
    pub fn take(settings: &Config) -> Result<Snapshot, String> {
        let mut connection = DedicatedConnection::open(settings)?;
        if !connection.query_one(sql!("backup/lock"))?.get::<_, bool>("is_locked") {
            let text =
                "another backup of this database, or a migration, is running: nothing was done";
            return Err(text.to_owned());
        }
        // From now on all deletions that removed their contents are committed, and later ones leave them.
        connection.execute(sql!("backup/pause_removals"))?;
        connection.execute(sql!("backup/begin"))?;
        let row = connection.query_one(sql!("backup/snapshot"))?;
        let installation_id: Option<Uuid> = row.get("installation_id");
        Ok(Snapshot {
            id: row.get("snapshot_id"),
            installation_id: installation_id
                .ok_or("the database has no installation id yet: start the service once")?,
            schema_version: row.get("schema_version"),
            totals: Totals::of(&connection.query_one(sql!("backup/counts"))?),
            connection,
        })
    }

    /// Returns the thousand files whose ids follow `after`, or what is left of them, in order. Those of deleted users
    /// are left out.
    pub fn files_after(&mut self, after: Uuid) -> Result<Vec<RecordedContent>, String> {
        let rows = self.connection.query(sql!("files/contents_after"), &[&after])?;
        Ok(rows.iter().map(RecordedContent::of).collect())
    }

    /// Returns these files as messages name them, in the order of ids.
    pub fn with_owners(&mut self, ids: &[Uuid]) -> Result<Vec<FileOfOwner>, String> {
        let rows = self.connection.query(sql!("files/with_owners"), &[&ids])?;
        Ok(rows.iter().map(FileOfOwner::of).collect())
    }

    /// Ends the snapshot. Fails if the connection was lost meanwhile, because then the locks were lost too.
    pub fn finish(mut self) -> Result<(), String> {
        self.connection.execute(sql!("backup/commit"))
    }
}
