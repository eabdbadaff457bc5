//! Whether the totals agree with the records, and whether the schema's parts are in force and undamaged.

use uuid::Uuid;

use super::Check;
use crate::commands::progress::{Progress, Unit};
use crate::db;
use crate::db::checks::{SchemaFault, Totals, UserTotals};
use crate::error::Error;

impl Check<'_> {
    /// Compares the totals that are kept with the records, and with the quotas. To be above a quota is no fault,
    /// because quotas may be lowered at any time.
    pub fn compare_totals(&mut self) -> Result<(), Error> {
        let (kept, counted) = db::checks::service_total(self.db)?;
        match kept {
            None => self.fault("the table storage has no row: no file can be uploaded"),
            Some(kept) if kept != counted => self.fault(&format!(
                "the total of the service is {kept} bytes, its files have {counted}"
            )),
            Some(_) => {}
        }
        let quota = self.config.storage_quota;
        if counted.unsigned_abs() > quota {
            self.warning(&format!(
                "all files have {counted} bytes, more than CLOAKROOM_STORAGE_QUOTA={quota}"
            ));
        }
        let users = self.compare_totals_of_users()?;
        self.findings
            .conclude(&format!("totals: {counted} bytes; {users} accounts, also deleted ones"));
        Ok(())
    }

    /// Compares the totals of every account. Returns how many there are.
    fn compare_totals_of_users(&mut self) -> Result<usize, Error> {
        let mut progress = Progress::new("comparing totals", Unit::Items, None);
        let (mut users, mut last) = (0, Uuid::nil());
        loop {
            let batch = db::checks::user_totals(self.db, last)?;
            let Some(newest) = batch.last() else { return Ok(users) };
            last = newest.id;
            users += batch.len();
            progress.suspend(|| batch.iter().for_each(|user| self.compare_totals_of(user)));
            progress.advance(batch.len() as u64);
        }
    }

    fn compare_totals_of(&mut self, user: &UserTotals) {
        let UserTotals { name, kept, counted, .. } = user;
        let Totals { files, bytes } = *counted;
        if kept != counted {
            self.fault(&format!(
                "the totals of user {name} are {} files of {} bytes, the records are {files} of {bytes}",
                kept.files, kept.bytes
            ));
        }
        if user.is_deleted {
            return;
        }
        let (max_bytes, max_files) = (self.config.user_storage_quota, self.config.user_file_quota);
        if bytes.unsigned_abs() > max_bytes {
            self.warning(&format!(
                "user {name} stores {bytes} bytes, more than CLOAKROOM_USER_STORAGE_QUOTA={max_bytes}"
            ));
        }
        if files > i64::from(max_files) {
            self.warning(&format!(
                "user {name} has {files} files, more than CLOAKROOM_USER_FILE_QUOTA={max_files}"
            ));
        }
    }

    /// Looks for parts of the schema that are missing or have no effect, as after a restore that was broken off.
    pub fn look_at_schema(&mut self) -> Result<(), Error> {
        for SchemaFault { kind, name, table } in db::checks::schema_faults(self.db)? {
            let Some(table) = table else {
                self.fault(&format!("{kind} {name} is missing: one of sql/migrations/ makes it"));
                continue;
            };
            let problem = match kind.as_str() {
                "index" => "is not valid: REINDEX INDEX makes it anew",
                "constraint" => "was never validated: ALTER TABLE VALIDATE CONSTRAINT does that",
                _ => "is disabled: ALTER TABLE ENABLE TRIGGER ALL enables it",
            };
            self.fault(&format!("{kind} {name} of table {table} {problem}"));
        }
        self.findings.conclude("schema: indexes, constraints and triggers looked at");
        Ok(())
    }

    /// Verifies every B-tree index, where the extension for that may be used.
    pub fn verify_indexes(&mut self) -> Result<(), Error> {
        let (is_usable, role) = db::checks::amcheck(self.db)?;
        if !is_usable {
            self.findings.ok(&format!(
                "amcheck: indexes not verified; to have that done, a superuser runs in this database: CREATE EXTENSION \
                 IF NOT EXISTS amcheck; GRANT EXECUTE ON FUNCTION bt_index_check(regclass, boolean) TO {role}"
            ));
            return Ok(());
        }
        let indexes = db::checks::btree_indexes(self.db)?;
        let mut progress =
            Progress::new("verifying indexes", Unit::Items, Some(indexes.len() as u64));
        for index in &indexes {
            if let Some(problem) = db::checks::verify(self.db, index)? {
                let name = &index.name;
                progress.suspend(|| {
                    self.fault(&format!(
                        "index {name} is damaged, REINDEX INDEX makes it anew: {problem}"
                    ));
                });
            }
            progress.advance(1);
        }
        drop(progress);
        self.findings.conclude(&format!("amcheck: {} indexes verified", indexes.len()));
        Ok(())
    }
}
