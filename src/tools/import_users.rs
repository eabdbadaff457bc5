//! `cloakroom import-users FILE.csv`: the rows of a file become accounts, all of them or, if one has a fault, none.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::mem;
use std::path::Path;
use std::time::Duration;

use csv::{ByteRecord, ReaderBuilder};
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use super::output::{Progress, count, print_line};
use crate::accounts::statements::AccountFields;
use crate::auth::imported;
use crate::config::{Config, ScryptCost, Smtp};
use crate::db::{Database, sql};
use crate::error::{Error, Problem};
use crate::model::problems::{MISSING, NOT_UTF8, value_error};
use crate::model::rules;
use crate::model::text::{email_key, folded};
use crate::serve::{CommandError, imported_hashes};

/// The columns that count.
const COLUMNS: [&str; 8] =
    ["email", "username", "name", "role", "is_active", "created_at", "last_login", "password_hash"];
/// The largest file, which is read as a whole: nothing is stored before all of it was seen.
const MAX_BYTES: u64 = 64 << 20;
/// The most rows, whose faults are kept to be named together.
const MAX_ROWS: usize = 100_000;
/// Rows in one statement.
const BATCH_ROWS: usize = 1000;
/// How long the transaction may take.
const MAX_TIME: Duration = Duration::from_secs(600);

/// Runs the command.
pub fn import_users(
    config: &Config,
    file: &Path,
    invites: bool,
    is_dry_run: bool,
) -> Result<(), CommandError> {
    if invites && matches!(config.smtp, Smtp::Off) {
        let fault = "--invite: CLOAKROOM_SMTP_URL is none, so no mail is sent".to_owned();
        return Err(CommandError::Settings(vec![fault]));
    }
    let (_, db) = super::open_installation(config)?;
    let bytes = read(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let mut table = Table::parse(text, config.scrypt)?;
    if !table.ignored.is_empty() {
        print_line(format_args!("ignored columns: {}", table.ignored.join(", ")));
    }
    table.look_up(&db).map_err(String::from)?;
    fail_if_faulty(mem::take(&mut table.faults))?;
    let mut rows: Vec<&Row> = table.rows.iter().filter(|row| !row.is_there).collect();
    // Two imports at a time then wait for each other in one order.
    rows.sort_by(|one, other| one.email_key.cmp(&other.email_key));
    let stored = match is_dry_run {
        true => Stored::expected(&rows, invites),
        false => store(&db, &rows, invites).map_err(String::from)?,
    };
    fail_if_faulty(stored.taken)?;
    warn_of_memory(config, &rows);
    let verb = if is_dry_run { "to be imported" } else { "imported" };
    let there = table.rows.len() as u64 - stored.accounts;
    let (accounts, invited) = (count(stored.accounts, "account"), stored.invited);
    print_line(format_args!("{verb}: {accounts}; there already: {there}; invited: {invited}."));
    Ok(())
}

/// Reads the whole file, or standard input.
fn read(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let input: Box<dyn Read> = match file.to_str() {
        Some("-") => Box::new(io::stdin()),
        _ => Box::new(File::open(file)?),
    };
    input.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MAX_BYTES {
        true => Err(io::Error::other(format!("larger than {} MiB", MAX_BYTES >> 20))),
        false => Ok(bytes),
    }
}

/// Says how many of the accounts have a hash that this configuration has too little memory for.
fn warn_of_memory(config: &Config, rows: &[&Row]) {
    let hashes = rows.iter().filter_map(|row| row.fields.password_hash.as_deref());
    let most = imported_hashes::most_memory(config);
    let memories = hashes.filter_map(imported::memory).filter(|memory| *memory > most);
    let (accounts, memory) = memories.fold((0, 0), |(n, max), memory| (n + 1, memory.max(max)));
    if let Some((_, text, advice)) = imported_hashes::finding(config, accounts, memory) {
        print_line(format_args!("warning: {text}. {advice}"));
    }
}

/// An account to be made. As JSON it has the columns of its row in the database.
#[derive(Serialize)]
struct Row {
    id: Uuid,
    email_key: String,
    #[serde(flatten)]
    fields: AccountFields,
    /// The line of the file on which it begins.
    #[serde(skip)]
    line: u64,
    /// Whether an account has its address.
    #[serde(skip)]
    is_there: bool,
}

/// A line, a column and what is wrong there; of the whole line if there is no column.
type Fault = (u64, Option<&'static str>, Problem);

/// What the file holds.
#[derive(Default)]
struct Table {
    /// Those without a fault.
    rows: Vec<Row>,
    faults: Vec<Fault>,
    /// The names of columns that do not count, as messages may show them.
    ignored: Vec<String>,
}

impl Table {
    /// Reads all rows. Fails if the header is not as it must be, or if there are too many rows.
    fn parse(text: &[u8], cost: ScryptCost) -> Result<Table, String> {
        if let Some(line) = stray_quote(text) {
            return Err(format!(
                "line {line}: Must have quotes only around a whole field, and two for one in it"
            ));
        }
        let reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text);
        let mut records = reader.into_byte_records();
        let broken = |e: csv::Error| format!("no CSV: {e}");
        let header = records.next().transpose().map_err(broken)?.unwrap_or_default();
        let (columns, ignored) = read_header(&header)?;
        let (mut table, mut lines) = (Table { ignored, ..Table::default() }, Lines::of(text));
        let mut first: HashMap<(&str, String), u64> = HashMap::new();
        for (number, record) in records.enumerate() {
            let record = record.map_err(broken)?;
            if number == MAX_ROWS {
                return Err(format!("more than {MAX_ROWS} rows: split the file"));
            }
            let line = lines.of_byte(record.position().map_or(0, csv::Position::byte) as usize);
            let mut reader = RowReader { columns: &columns, record, line, faults: Vec::new() };
            if reader.record.len() != header.len() {
                let what = format!("Must have {} fields, as the header has", header.len());
                table.faults.push((line, None, value_error(what)));
                continue;
            }
            let row = reader.read(cost);
            for (column, key) in row.keys() {
                match first.entry((column, key)) {
                    Entry::Vacant(place) => drop(place.insert(line)),
                    Entry::Occupied(place) => {
                        let what = format!("Must not be that of line {} too", place.get());
                        reader.faults.push((line, Some(column), value_error(what)));
                    }
                }
            }
            if reader.faults.is_empty() {
                table.rows.push(row);
            }
            table.faults.append(&mut reader.faults);
        }
        Ok(table)
    }

    /// Finds out who is there already, and which usernames others have.
    fn look_up(&mut self, db: &Database) -> Result<(), Error> {
        for rows in self.rows.chunks_mut(BATCH_ROWS) {
            let found = db.read(sql!("tools/import/taken"), &[&json!(rows)])?;
            let mut states: HashMap<Uuid, (bool, bool)> = found
                .iter()
                .map(|row| (row.get("id"), (row.get("is_there"), row.get("has_taken_username"))))
                .collect();
            for row in rows {
                let (is_there, has_taken_username) = states.remove(&row.id).unwrap_or_default();
                row.is_there = is_there;
                if has_taken_username && !is_there {
                    self.faults.push(row.username_taken());
                }
            }
        }
        Ok(())
    }
}

/// Names all faults, if there are any, and fails then.
fn fail_if_faulty(mut faults: Vec<Fault>) -> Result<(), String> {
    faults.sort_by_key(|(line, ..)| *line);
    for (line, column, problem) in &faults {
        let column = column.map_or(String::new(), |name| format!(", column {name}"));
        print_line(format_args!("line {line}{column}: {}", problem.message));
    }
    match faults.len() as u64 {
        0 => Ok(()),
        faults => Err(format!("{}: nothing was imported", count(faults, "fault"))),
    }
}

/// The place of each column that counts, in the order of [`COLUMNS`], and the names of the others. Names may be in any
/// case.
fn read_header(header: &ByteRecord) -> Result<([Option<usize>; 8], Vec<String>), String> {
    let names = header.iter().map(|name| String::from_utf8_lossy(name).trim().to_owned());
    let names: Vec<String> = names.collect();
    let is = |name: &String, column: &str| name.eq_ignore_ascii_case(column);
    for column in COLUMNS {
        if names.iter().filter(|name| is(name, column)).count() > 1 {
            return Err(format!("line 1, column {column}: Must be there only once"));
        }
    }
    let columns = COLUMNS.map(|column| names.iter().position(|name| is(name, column)));
    let [email, username, ..] = columns;
    if email.or(username).is_none() {
        let which =
            "line 1: Must name the columns, email or username among them, separated by commas";
        return Err(which.to_owned());
    }
    let counts = |name: &&String| COLUMNS.iter().any(|column| is(name, column));
    let ignored = names.iter().filter(|name| !counts(name));
    Ok((columns, ignored.map(|name| name.escape_debug().to_string()).collect()))
}

/// The line of the first quote that opens or closes no whole field (RFC 4180), which the parser would not mind: rows
/// that follow it could become a part of one field, and be lost.
fn stray_quote(text: &[u8]) -> Option<u64> {
    let (mut at, mut opened, mut before) = (0, None, b'\n');
    while let Some(byte) = text.get(at) {
        let next = text.get(at + 1);
        match (byte, opened) {
            (b'"', Some(_)) if next == Some(&b'"') => at += 1,
            (b'"', Some(_)) if matches!(next, None | Some(b',' | b'\r' | b'\n')) => opened = None,
            (b'"', None) if matches!(before, b',' | b'\r' | b'\n') => opened = Some(at),
            (b'"', _) => {
                opened = Some(at);
                break;
            }
            _ => {}
        }
        before = *byte;
        at += 1;
    }
    opened.map(|at| 1 + line_ends(text.get(..at).unwrap_or_default()))
}

/// How many lines end in a text: with CR, LF, or both.
fn line_ends(text: &[u8]) -> u64 {
    let is_end = |(at, byte): (usize, &u8)| match byte {
        b'\r' => text.get(at + 1) != Some(&b'\n'),
        byte => *byte == b'\n',
    };
    text.iter().enumerate().filter(|it| is_end(*it)).count() as u64
}

/// The numbers of the lines of a text, for places that come one after the other.
struct Lines<'a> {
    text: &'a [u8],
    at: usize,
    line: u64,
}

impl Lines<'_> {
    fn of(text: &[u8]) -> Lines<'_> {
        Lines { text, at: 0, line: 1 }
    }

    /// The line of the first byte from `byte` on that ends no line. The place that the parser tells may be that of the
    /// end of the line before, or of empty lines.
    fn of_byte(&mut self, byte: usize) -> u64 {
        let rest = self.text.get(byte..).unwrap_or_default();
        let blank = rest.iter().take_while(|it| matches!(it, b'\r' | b'\n')).count();
        let passed = self.text.get(self.at..byte + blank).unwrap_or_default();
        self.line += line_ends(passed);
        self.at = byte + blank;
        self.line
    }
}

/// Reads the fields of a row, and notes their faults.
struct RowReader<'a> {
    columns: &'a [Option<usize>; 8],
    record: ByteRecord,
    line: u64,
    faults: Vec<Fault>,
}

impl RowReader<'_> {
    /// The value of a field by its rule; `None` if the field is blank, or has a fault.
    fn field<T>(
        &mut self,
        column: &'static str,
        rule: impl Fn(&str) -> Result<T, Problem>,
    ) -> Option<T> {
        let place = COLUMNS.iter().position(|name| *name == column)?;
        let bytes = self.record.get((*self.columns.get(place)?)?)?;
        let value = match str::from_utf8(bytes).map(str::trim) {
            Ok("") => return None,
            Ok(text) => rule(text),
            Err(_) => Err(NOT_UTF8),
        };
        value.map_err(|problem| self.faults.push((self.line, Some(column), problem))).ok()
    }

    fn read(&mut self, cost: ScryptCost) -> Row {
        let faults = self.faults.len();
        let email = self.field("email", rules::email);
        if email.is_none() && self.faults.len() == faults {
            self.faults.push((self.line, Some("email"), MISSING));
        }
        let fields = AccountFields {
            email,
            username: self.field("username", rules::username),
            name: self.field("name", rules::name),
            role: self.field("role", rules::role),
            is_active: self.field("is_active", rules::boolean),
            created_at: self.field("created_at", rules::timestamp),
            last_login: self.field("last_login", rules::timestamp),
            password_hash: self.field("password_hash", |text| imported::parse(text, cost)),
            ..AccountFields::default()
        };
        let email_key = fields.email.as_deref().map(email_key).unwrap_or_default();
        Row { id: Uuid::new_v4(), email_key, fields, line: self.line, is_there: false }
    }
}

impl Row {
    /// What no other row may have, by the columns.
    fn keys(&self) -> impl Iterator<Item = (&'static str, String)> {
        let username = self.fields.username.as_deref().map(folded);
        let email = (!self.email_key.is_empty()).then(|| self.email_key.clone());
        [("email", email), ("username", username)]
            .into_iter()
            .filter_map(|(column, key)| Some((column, key?)))
    }

    fn username_taken(&self) -> Fault {
        (self.line, Some("username"), value_error("Username already exists"))
    }

    fn is_to_be_invited(&self) -> bool {
        self.fields.password_hash.is_none() && self.fields.is_active != Some(false)
    }
}

/// What was stored.
#[derive(Default)]
struct Stored {
    accounts: u64,
    invited: u64,
    /// Rows whose username another account has got meanwhile: then nothing was stored.
    taken: Vec<Fault>,
}

impl Stored {
    /// What would be stored.
    fn expected(rows: &[&Row], invites: bool) -> Stored {
        let invited = rows.iter().filter(|row| invites && row.is_to_be_invited()).count() as u64;
        Stored { accounts: rows.len() as u64, invited, taken: Vec::new() }
    }
}

/// Stores all rows in one transaction, but for those whose addresses have come meanwhile.
fn store(db: &Database, rows: &[&Row], invites: bool) -> Result<Stored, Error> {
    let mut progress = Progress::begin("storing accounts", Some(rows.len() as u64));
    db.run(MAX_TIME, |client| {
        let (mut stored, mut transaction) = (Stored::default(), client.transaction()?);
        for rows in rows.chunks(BATCH_ROWS) {
            let (given, queued) = (json!(rows), stored.invited as i64);
            let created =
                transaction.query(sql!("tools/import/users"), &[&given, &invites, &queued])?;
            stored.accounts += created.len() as u64;
            let is_invited = created.iter().filter(|row| row.get("is_invited"));
            stored.invited += is_invited.count() as u64;
            if created.len() < rows.len() {
                let ids: HashSet<Uuid> = created.iter().map(|row| row.get("id")).collect();
                let left = rows.iter().filter(|row| !ids.contains(&row.id));
                let left: HashMap<Uuid, &Row> = left.map(|row| (row.id, *row)).collect();
                let given = json!(left.values().collect::<Vec<_>>());
                for row in transaction.query(sql!("tools/import/taken"), &[&given])? {
                    let is_there: bool = row.get("is_there");
                    let other = left.get(&row.get("id")).filter(|_| !is_there);
                    stored.taken.extend(other.map(|row| row.username_taken()));
                }
            }
            progress.advance(rows.len() as u64);
        }
        if stored.taken.is_empty() {
            transaction.commit()?;
        }
        Ok(stored)
    })
}
