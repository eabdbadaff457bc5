//! CSV rows (RFC 4180) that are safe to open in a spreadsheet.

use std::fmt::Display;

use csv::{ByteRecord, Terminator, Writer, WriterBuilder};

use crate::error::Error;

/// The media type of CSV (RFC 4180) in UTF-8.
pub const CSV: &str = "text/csv; charset=utf-8";

/// Writes rows to memory, cell by cell.
pub struct CsvRows {
    out: Writer<Vec<u8>>,
    /// The cells of the row that has not ended. The library writes a whole row faster than cell by cell.
    row: ByteRecord,
    /// Why a row could not be written. That is not expected of rows in memory.
    failure: Option<csv::Error>,
}

impl CsvRows {
    /// No rows, with room for `capacity` bytes.
    pub fn new(capacity: usize) -> CsvRows {
        let mut builder = WriterBuilder::new();
        builder.terminator(Terminator::CRLF);
        let out = builder.from_writer(Vec::with_capacity(capacity));
        CsvRows { out, row: ByteRecord::new(), failure: None }
    }

    /// Writes a cell of text that a user chose; `None` is an empty cell. Text that a spreadsheet would run as a formula
    /// gets a leading `'` (OWASP, "CSV Injection").
    pub fn text(&mut self, text: Option<&str>) {
        let text = text.unwrap_or_default();
        match text.as_bytes().first() {
            Some(b'=' | b'+' | b'-' | b'@' | b'\t' | b'\r') => self.cell(format!("'{text}")),
            _ => self.cell(text),
        }
    }

    /// Writes a cell as it is, quoted where it has to be.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_needed_and_formulas_are_disarmed() -> Result<(), Error> {
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
        ] {
            let mut rows = CsvRows::new(100);
            rows.cell("x");
            rows.text(text);
            rows.cell("0");
            rows.end();
            assert_eq!(rows.finish()?, written.as_bytes(), "{text:?}");
        }
        Ok(())
    }
}
