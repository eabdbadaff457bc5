//! CSV rows (RFC 4180) that are safe to open in a spreadsheet.

/// The media type of CSV (RFC 4180) in UTF-8.
pub const CSV: &str = "text/csv; charset=utf-8";

/// Writes rows to memory, cell by cell. It is not the crate `csv`, which copies each cell twice and looks at each byte:
/// that was a third of the instructions of an export.
pub struct CsvRows {
    out: Vec<u8>,
    /// Whether the next cell is the first of its row.
    at_row_start: bool,
}

impl CsvRows {
    /// No rows, with room for `capacity` bytes.
    pub fn new(capacity: usize) -> CsvRows {
        CsvRows { out: Vec::with_capacity(capacity), at_row_start: true }
    }

    /// Writes a cell of text that a user chose, quoted where it has to be; `None` is an empty cell. Text that a
    /// spreadsheet would run as a formula gets a leading `'` (OWASP, "CSV Injection").
    pub fn text(&mut self, text: Option<&str>) {
        let text = text.unwrap_or_default();
        let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
        let disarm = if is_formula { "'" } else { "" };
        if !text.bytes().any(|byte| matches!(byte, b',' | b'"' | b'\r' | b'\n')) {
            self.cell(disarm);
            self.out.extend_from_slice(text.as_bytes());
            return;
        }
        self.cell("\"");
        self.out.extend_from_slice(disarm.as_bytes());
        self.out.extend_from_slice(text.replace('"', "\"\"").as_bytes());
        self.out.push(b'"');
    }

    /// Writes a cell as it is: text that needs no quotes, such as a number.
    pub fn cell(&mut self, bytes: impl AsRef<[u8]>) {
        if !self.at_row_start {
            self.out.push(b',');
        }
        self.at_row_start = false;
        self.out.extend_from_slice(bytes.as_ref());
    }

    /// Ends the row.
    pub fn end(&mut self) {
        self.out.extend_from_slice(b"\r\n");
        self.at_row_start = true;
    }

    /// Returns the rows as they are sent.
    pub fn finish(self) -> Vec<u8> {
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_needed_and_formulas_are_disarmed() {
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
            assert_eq!(rows.finish(), written.as_bytes(), "{text:?}");
        }
    }
}
