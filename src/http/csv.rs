//! CSV rows (RFC 4180) that are safe to open in a spreadsheet.

use std::borrow::Cow;

/// The media type of CSV (RFC 4180) in UTF-8.
pub const CSV: &str = "text/csv; charset=utf-8";

/// The characters with which a cell begins that spreadsheets take for a formula, of ASCII and of full width.
const FORMULA_SIGNS: [char; 10] = ['=', '+', '-', '@', '＝', '＋', '－', '＠', '\t', '\r'];

/// Most bytes of the rows of an export that are in memory at a time.
const MAX_BYTES: usize = 256 << 10;
/// Room for these and the row that exceeds them, before memory is allocated anew. The allocator reuses blocks below a
/// mebibyte. Larger ones come from the kernel each time, and clearing their pages takes time.
const CAPACITY: usize = 300_000;

/// Writes rows to memory, cell by cell.
pub struct CsvRows {
    bytes: Vec<u8>,
    /// How many rows have ended.
    rows: usize,
    /// Where the next one begins.
    end: usize,
}

impl CsvRows {
    /// Only the row with the names of the columns, if they are given, with commas between them.
    pub fn new(names: Option<&str>) -> CsvRows {
        let mut bytes = Vec::with_capacity(CAPACITY);
        bytes.extend(names.into_iter().flat_map(|names| [names.as_bytes(), b"\r\n"].concat()));
        CsvRows { end: bytes.len(), bytes, rows: 0 }
    }

    /// Writes a cell of text that a user chose, quoted if necessary; `None` is an empty cell. See
    /// [`without_formulas`].
    pub fn text(&mut self, text: Option<&str>) {
        let text = text.unwrap_or_default();
        // Hardly any cell needs more than this one look at its bytes.
        let is_special = |byte| matches!(byte, b'"' | b',' | b';' | b'\t' | b'\r' | b'\n');
        if !text.bytes().any(is_special) && !text.starts_with(FORMULA_SIGNS) {
            return self.cell(text);
        }
        let text = without_formulas(text);
        match text.contains(['"', ',', '\r', '\n']) {
            true => self.cell(["\"", &text.replace('"', "\"\""), "\""].concat()),
            false => self.cell(text.as_bytes()),
        }
    }

    /// Writes a cell as it is. It must have no quote, comma or line break, as numbers, times and ids have none.
    pub fn cell(&mut self, bytes: impl AsRef<[u8]>) {
        self.bytes.extend_from_slice(bytes.as_ref());
        self.bytes.push(b',');
    }

    /// Ends the row. If it is not the first, and the rows are longer than 256 KiB with it, it is removed again, and
    /// false is returned.
    pub fn end(&mut self) -> bool {
        self.bytes.pop();
        self.bytes.extend(b"\r\n");
        let fits = self.bytes.len() <= MAX_BYTES || self.rows == 0;
        if fits {
            (self.rows, self.end) = (self.rows + 1, self.bytes.len());
        }
        self.bytes.truncate(self.end);
        fits
    }

    /// How many rows of the same lengths fit, at least one.
    pub fn capacity(&self) -> usize {
        (self.rows * MAX_BYTES / self.end.max(1)).max(1)
    }

    /// Returns the rows as they are sent.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
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
    fn cells_are_quoted_where_needed_and_formulas_are_made_text() {
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
            assert_eq!(rows.finish(), written.as_bytes(), "{text:?}");
        }
    }

    #[test]
    fn no_formula_runs_in_programs_that_split_elsewhere() {
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
            let written = rows.finish();
            for separator in [b',', b';', b'\t'] {
                let mut reader = csv::ReaderBuilder::new();
                reader.delimiter(separator).flexible(true).has_headers(false);
                let records: Result<Vec<_>, _> =
                    reader.from_reader(&*written).into_records().collect();
                let Ok(records) = records else { panic!("no records in {written:?}") };
                let formula = |cell: &&str| cell.starts_with(FORMULA_SIGNS);
                assert_eq!(records.iter().flatten().find(formula), None, "{text:?} {written:?}");
            }
        }
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
            let written = rows.finish();
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
