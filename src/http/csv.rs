//! CSV rows (RFC 4180) that are safe to open in a spreadsheet.

use std::borrow::Cow;
use std::fmt::Display;

use csv::{ByteRecord, Terminator, Writer, WriterBuilder};

use crate::error::Error;

/// The media type of CSV (RFC 4180) in UTF-8.
pub const CSV: &str = "text/csv; charset=utf-8";

/// The characters with which a cell begins that spreadsheets take for a formula, of ASCII and of full width.
const FORMULA_SIGNS: [char; 10] = ['=', '+', '-', '@', '＝', '＋', '－', '＠', '\t', '\r'];

/// Room for rows in bytes, before memory is allocated anew. The allocator reuses blocks below a mebibyte. Larger ones
/// come from the kernel each time, and clearing their pages takes time.
const CAPACITY: usize = 300_000;

/// Writes rows to memory, cell by cell.
pub struct CsvRows {
    out: Writer<Vec<u8>>,
    /// The cells of the row that has not ended. The library writes a whole row faster than cell by cell.
    row: ByteRecord,
    /// Why a row could not be written. That is not expected of rows in memory.
    failure: Option<csv::Error>,
}

impl CsvRows {
    /// Only the row with the names of the columns, if they are given, with commas between them.
    pub fn new(names: Option<&str>) -> CsvRows {
        let mut bytes = Vec::with_capacity(CAPACITY);
        if let Some(names) = names {
            bytes.extend([names.as_bytes(), b"\r\n"].concat());
        }
        let out = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(bytes);
        CsvRows { out, row: ByteRecord::new(), failure: None }
    }

    /// Writes a cell of text that a user chose; `None` is an empty cell. See [`without_formulas`].
    pub fn text(&mut self, text: Option<&str>) {
        self.cell(without_formulas(text.unwrap_or_default()).as_bytes());
    }

    /// Writes a cell as it is, quoted if necessary.
    pub fn cell(&mut self, bytes: impl AsRef<[u8]>) {
        self.row.push_field(bytes.as_ref());
    }

    /// Ends the row.
    pub fn end(&mut self) {
        if let Err(error) = self.out.write_byte_record(&self.row) {
            self.failure.get_or_insert(error);
        }
        self.row.clear();
    }

    /// Returns the rows as they are sent.
    pub fn finish(self) -> Result<Vec<u8>, Error> {
        let failed = |error: &dyn Display| Error::Internal(format!("CSV: {error}"));
        match self.failure {
            Some(error) => Err(failed(&error)),
            None => self.out.into_inner().map_err(|error| failed(&error)),
        }
    }
}

/// Makes text harmless that a spreadsheet would run as a formula: it gets a leading `'` (OWASP, "CSV Injection"), and
/// so does each part of it that would begin a cell in a program which splits at semicolons or tabs. Such a program
/// takes a quote within one of its cells for an ordinary character, so to quote ours would not help: line breaks in it
/// begin a row, and two quotes, which stand for one of the text, may begin and end a quoted part.
fn without_formulas(text: &str) -> Cow<'_, str> {
    let (mut safe, mut written, mut begins_cell) = (String::new(), 0, true);
    for (place, byte) in text.bytes().enumerate() {
        if begins_cell && text[place..].starts_with(FORMULA_SIGNS) {
            if safe.is_empty() && place > 0 {
                safe.push('\'');
            }
            safe.extend([&text[written..place], "'"]);
            written = place;
        }
        begins_cell = matches!(byte, b';' | b'\t' | b'\r' | b'\n') || (begins_cell && byte == b'"');
    }
    if safe.is_empty() {
        return text.into();
    }
    (safe + &text[written..]).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_needed_and_formulas_are_made_text() -> Result<(), Error> {
        for (text, written) in [
            (None, "x,,0\r\n"),
            (Some("plain text"), "x,plain text,0\r\n"),
            (Some("a,b"), "x,\"a,b\",0\r\n"),
            (Some("say \"hi\""), "x,\"say \"\"hi\"\"\",0\r\n"),
            (Some("two\r\nlines"), "x,\"two\r\nlines\",0\r\n"),
            (Some("=1+2"), "x,'=1+2,0\r\n"),
            (Some("+1"), "x,'+1,0\r\n"),
            (Some("-1"), "x,'-1,0\r\n"),
            (Some("@a"), "x,'@a,0\r\n"),
            (Some("\ta"), "x,'\ta,0\r\n"),
            (Some("\ra"), "x,\"'\ra\",0\r\n"),
            (Some("a=1"), "x,a=1,0\r\n"),
            (Some("＝1"), "x,'＝1,0\r\n"),
            (Some("a;b -c; d"), "x,a;b -c; d,0\r\n"),
            (Some("a;=1;-2"), "x,'a;'=1;'-2,0\r\n"),
        ] {
            let mut rows = CsvRows::new(None);
            rows.cell("x");
            rows.text(text);
            rows.cell("0");
            rows.end();
            assert_eq!(rows.finish()?, written.as_bytes(), "{text:?}");
        }
        Ok(())
    }

    #[test]
    fn no_formula_runs_in_programs_that_split_elsewhere() -> Result<(), Error> {
        let formulas = ["=1+2", "+1", "-1", "@a", "＝1", "＋1", "－1", "＠a"];
        let befores = [
            "", ";", "\t", "a;", "a\t", "a,b;", "a;\"", "a;\"\"", "a\n", "a\r\n", "\"", "\";",
            "a;\t",
        ];
        let texts = befores.iter().flat_map(|before| {
            formulas.map(|formula| format!("{before}{formula}, {before}{formula}"))
        });
        for text in texts {
            let mut rows = CsvRows::new(None);
            rows.cell("x");
            rows.text(Some(&text));
            rows.text(Some(&text));
            rows.end();
            let written = rows.finish()?;
            for separator in [b',', b';', b'\t'] {
                let mut reader = csv::ReaderBuilder::new();
                reader.delimiter(separator).flexible(true).has_headers(false);
                let records: Result<Vec<_>, _> =
                    reader.from_reader(&*written).into_records().collect();
                let records = records.map_err(|e| Error::Internal(e.to_string()))?;
                let formula = |cell: &&str| cell.starts_with(FORMULA_SIGNS);
                assert_eq!(records.iter().flatten().find(formula), None, "{text:?} {written:?}");
            }
        }
        Ok(())
    }

    #[test]
    fn fuzz_cells() {
        fuzz::check("csv", |input| {
            // No UTF-8 has this byte.
            let cells: Vec<_> = input.split(|b| *b == 0xff).map(String::from_utf8_lossy).collect();
            let mut rows = CsvRows::new(None);
            for _ in 0..2 {
                cells.iter().for_each(|cell| rows.text(Some(cell)));
                rows.cell("x");
                rows.end();
            }
            let Ok(written) = rows.finish() else { panic!("no rows") };
            let read = |separator, quoting| {
                let mut reader = csv::ReaderBuilder::new();
                reader.delimiter(separator).quoting(quoting).flexible(true).has_headers(false);
                let records: Result<Vec<_>, _> =
                    reader.from_reader(&*written).into_records().collect();
                let Ok(records) = records else { panic!("no records in {written:?}") };
                let formula = |cell: &&str| cell.starts_with(FORMULA_SIGNS);
                assert_eq!(records.iter().flatten().find(formula), None, "{written:?}");
                records
            };
            for separator in [b';', b'\t'] {
                read(separator, false);
                read(separator, true);
            }
            let records = read(b',', true);
            assert_eq!(records.len(), 2);
            let shown = cells.iter().map(|cell| without_formulas(cell)).chain(["x".into()]);
            records.iter().for_each(|record| assert!(record.iter().eq(shown.clone())));
            for cell in &cells {
                let mut original = cell.chars().peekable();
                let added = |c: &char| original.next_if_eq(c).is_none();
                assert!(without_formulas(cell).chars().filter(added).all(|c| c == '\''));
                assert_eq!(original.next(), None);
            }
        });
    }
}
