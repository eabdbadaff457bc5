//! `cloakroom check`: compares the database with the data directory, and looks for damage in either. It may run beside
//! a service: whatever looks wrong is looked up once more before it is reported, in an order that no upload and no
//! deletion upsets. It changes nothing, unless it is to bring contents back from the trash.

mod contents;

use std::time::Instant;

use super::database::checks::{self, MAX_NAMED_ACCOUNTS, UserTotals};
use super::findings::Findings;
use super::progress::Progress;
use super::quantity::count;
use super::{open_installation, print_line};
use crate::config::Config;
use crate::db::{Database, one_row, sql};
use crate::error::Error;
use crate::storage::Storage;

/// Parameters of every step of the check, and its findings.
struct Check<'a> {
    config: &'a Config,
    storage: &'a Storage,
    db: &'a Database,
    /// How many of the contents to read, in percent.
    sample: f64,
    /// Whether to bring missing contents back from the trash.
    repairs: bool,
    findings: Findings,
}

/// Runs the command. Fails if there is any fault; each has been printed by then.
pub fn check(config: &Config, sample: f64, repairs: bool) -> Result<(), String> {
    let begin = Instant::now();
    let mut findings = Findings::default();
    let (storage, db) = match open_installation(config) {
        Ok(opened) => opened,
        Err(reason) => {
            findings.fault(reason, "");
            return findings.finish();
        }
    };
    let mut check = Check { config, storage: &storage, db: &db, sample, repairs, findings };
    // A step that fails, as on a damaged table, does not end the check: the others may find more.
    check.run("records", Check::compare_records);
    check.run("contents", Check::compare_contents);
    check.run("totals", Check::compare_totals);
    check.run("lists and statistics", Check::compare_copies);
    check.run("schema", Check::examine_schema);
    check.run("amcheck", Check::verify_indexes);
    print_line(format_args!("checked in {:.1} s", begin.elapsed().as_secs_f64()));
    check.findings.finish()
}

impl Check<'_> {
    /// Runs a step, which prints what it finds. A step that cannot be finished is a fault.
    fn run(&mut self, name: &str, step: fn(&mut Self) -> Result<(), Error>) {
        if let Err(error) = step(self) {
            self.findings.fault(format_args!("{name}: {}", error.cause()), "");
            self.findings.sum_up(format_args!("{name}: not finished"));
        }
    }

    /// Compares the totals that are kept with the records, and with the quotas. To be above a quota is no fault,
    /// because quotas may be lowered at any time.
    fn compare_totals(&mut self) -> Result<(), Error> {
        let sql = sql!("checks/service_total");
        let row = one_row(self.db.read_unprepared(sql, &[], Some(checks::MAX_STATEMENT_TIME))?)?;
        let (kept, counted): (Option<i64>, i64) = (row.get("kept"), row.get("counted"));
        match kept {
            None => {
                self.findings
                    .fault("the table storage_shards has no row: no file can be uploaded", "");
            }
            Some(kept) if kept != counted => self.findings.fault(
                format_args!("the total of the service is {kept} bytes, its files have {counted}"),
                "",
            ),
            Some(_) => {}
        }
        let quota = self.config.storage_quota;
        if counted.unsigned_abs() > quota {
            let text = format_args!(
                "all files have {counted} bytes, more than CLOAKROOM_STORAGE_QUOTA={quota}"
            );
            self.findings.warning(text, "");
        }
        let accounts: i64 = row.get("accounts");
        let progress = Progress::of_items("comparing totals", Some(accounts.unsigned_abs()));
        let Config { user_storage_quota: max_bytes, user_file_quota: max_files, .. } = self.config;
        let named = checks::user_totals(self.db, *max_bytes, *max_files)?;
        drop(progress);
        named.iter().take(MAX_NAMED_ACCOUNTS).for_each(|user| self.compare_totals_of(user));
        if named.len() > MAX_NAMED_ACCOUNTS {
            let text = format_args!("more than {MAX_NAMED_ACCOUNTS} accounts have such totals");
            self.findings.warning(text, "");
        }
        let accounts = count(accounts.unsigned_abs(), "account");
        let text = format_args!("totals: {counted} bytes of {accounts}, deleted ones included");
        self.findings.sum_up(text);
        Ok(())
    }

    /// Compares the tables that triggers keep for lists and statistics with those that they are made of.
    fn compare_copies(&mut self) -> Result<(), Error> {
        let sql = sql!("checks/copies");
        for row in self.db.read_unprepared(sql, &[], Some(checks::MAX_STATEMENT_TIME))? {
            let (copy, faults): (&str, i64) = (row.get("copy"), row.get("faults"));
            let text =
                format_args!("the table {copy} differs from what it is made of in {faults} rows");
            self.findings.fault(text, "");
        }
        Ok(())
    }

    fn compare_totals_of(&mut self, user: &UserTotals) {
        let UserTotals { name, kept, counted: (files, bytes), .. } = user;
        if *kept != user.counted {
            let (kept_files, kept_bytes) = kept;
            let text = format_args!(
                "the totals of user {name} are {} of {kept_bytes} bytes, the records are {files} of {bytes}",
                count(kept_files.unsigned_abs(), "file")
            );
            self.findings.fault(text, "");
        }
        let Config { user_storage_quota: max_bytes, user_file_quota: max_files, .. } = self.config;
        if !user.is_deleted && bytes.unsigned_abs() > *max_bytes {
            let text = format_args!(
                "user {name} stores {bytes} bytes, more than CLOAKROOM_USER_STORAGE_QUOTA={max_bytes}"
            );
            self.findings.warning(text, "");
        }
        if !user.is_deleted && *files > i64::from(*max_files) {
            let text = format_args!(
                "user {name} has {files} files, more than CLOAKROOM_USER_FILE_QUOTA={max_files}"
            );
            self.findings.warning(text, "");
        }
    }

    /// Looks for parts of the schema that are missing or have no effect, as after a restore that was broken off.
    fn examine_schema(&mut self) -> Result<(), Error> {
        for row in self.db.read(sql!("checks/schema_faults"), &[])? {
            let (kind, name): (&str, &str) = (row.get("kind"), row.get("name"));
            let problem = match (kind, row.get::<_, Option<&str>>("table_name")) {
                (_, None) => "is missing: one of sql/migrations/ makes it".to_owned(),
                ("index", Some(table)) => {
                    format!("of table {table} is not valid: REINDEX INDEX makes it anew")
                }
                ("constraint", Some(table)) => format!(
                    "of table {table} was never validated: ALTER TABLE VALIDATE CONSTRAINT does that"
                ),
                (_, Some(table)) => format!(
                    "of table {table} is disabled: ALTER TABLE ENABLE TRIGGER ALL enables it"
                ),
            };
            self.findings.fault(format_args!("{kind} {name} {problem}"), "");
        }
        self.findings.sum_up("schema: indexes, constraints and triggers looked at");
        Ok(())
    }

    /// Verifies every B-tree index, if the extension for that may be used.
    fn verify_indexes(&mut self) -> Result<(), Error> {
        let row = one_row(self.db.read(sql!("checks/amcheck"), &[])?)?;
        if !row.get::<_, bool>("is_usable") {
            let role: &str = row.get("role");
            self.findings.ok(format_args!(
                "amcheck: indexes not verified; to have that done, a superuser runs in this database: CREATE EXTENSION \
                 IF NOT EXISTS amcheck; GRANT EXECUTE ON FUNCTION bt_index_check(regclass, boolean) TO {role}"
            ));
            return Ok(());
        }
        let indexes = self.db.read(sql!("checks/btree_indexes"), &[])?;
        let mut progress = Progress::of_items("verifying indexes", Some(indexes.len() as u64));
        for index in &indexes {
            let name: &str = index.get("name");
            let problem = checks::verify(self.db, index.get("oid"))?;
            if let Some(problem) = problem {
                progress.erase();
                let text =
                    format_args!("index {name} is damaged, REINDEX INDEX makes it anew: {problem}");
                self.findings.fault(text, "");
            }
            progress.advance(1);
        }
        drop(progress);
        self.findings.sum_up(format_args!("amcheck: indexes verified: {}", indexes.len()));
        Ok(())
    }
}
