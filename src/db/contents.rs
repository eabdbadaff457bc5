//! Contents without a record, which are removed at once or in some days, and deleted files, whose contents stay.

use uuid::Uuid;

use super::connection::SqlParams;
use super::{Database, one_row, sql};
use crate::config::Config;
use crate::error::Error;

/// Deletes at most `limit` rows of each of five kinds: files of deleted users; deleted files over the quota of their
/// user; deleted files over the quota of all deleted files; deleted files older than `config.trash_days`; and records
/// of deletions that are as old, at least a day. Returns how many rows it deleted.
pub fn remove_records(db: &Database, config: &Config, limit: i64) -> Result<i64, Error> {
    let (all, days) = (config.deleted_quota as i64, config.trash_days.cast_signed());
    let (bytes, files) = (config.user_storage_quota as i64, i64::from(config.user_file_quota));
    let due = one_row(db.read(sql!("db/removals/due"), &[&all, &days, &bytes])?)?;
    let kinds: [(&str, &'static str, SqlParams); 5] = [
        ("of_deleted_users", sql!("db/removals/remove"), &[&limit]),
        ("beyond_own_quota", sql!("db/removals/make_room_of_user"), &[&limit, &bytes, &files]),
        ("beyond_quota", sql!("db/removals/make_room"), &[&limit, &all]),
        ("old", sql!("db/removals/expire"), &[&limit, &days]),
        ("forgotten", sql!("changes/forget"), &[&limit, &days]),
    ];
    let mut removed = 0;
    for (_, sql, params) in kinds.into_iter().filter(|(kind, ..)| due.get(*kind)) {
        removed += one_row(db.write(sql, params)?)?.get::<_, i64>("removed");
    }
    Ok(removed)
}

/// Returns up to `limit` contents that are to be removed: those of files that nobody may restore, and those that were
/// listed more than `days` days ago; none while a backup runs.
pub fn deleted(db: &Database, days: u32, limit: i64) -> Result<Vec<Uuid>, Error> {
    let days = days.cast_signed();
    if !one_row(db.read(sql!("db/removals/contents_due"), &[&days])?)?.get::<_, bool>("due") {
        return Ok(Vec::new());
    }
    let rows = db.read(sql!("db/removals/contents"), &[&days, &limit])?;
    Ok(rows.iter().map(|row| row.get("id")).collect())
}

/// Lists contents without a record that are not listed yet, so that they are removed in some days. Returns which.
pub fn list_for_removal(db: &Database, ids: &[Uuid]) -> Result<Vec<Uuid>, Error> {
    let rows = db.write(sql!("db/removals/list_contents"), &[&ids])?;
    Ok(rows.iter().map(|row| row.get("id")).collect())
}

/// Forgets contents that are `gone`, and has those that are `left` wait for a minute; `days` as for [`deleted`].
/// Returns how many are gone.
pub fn forget_deleted(
    db: &Database,
    gone: &[Uuid],
    left: &[Uuid],
    days: u32,
) -> Result<i64, Error> {
    let params: SqlParams = &[&gone, &left, &days.cast_signed()];
    Ok(db.write(sql!("db/removals/forget_contents"), params)?.len() as i64)
}
