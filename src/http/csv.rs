//! CSV rows (RFC 4180) that are safe to open in a spreadsheet.

use csv::{Terminator, Writer, WriterBuilder};

use crate::error::Error;

/// Rows in memory: a batch of an export.
pub struct Rows {
    out: Writer<Vec<u8>>,
}

impl Rows {
    /// No rows, with room for `bytes`.
    pub fn new(bytes: usize) -> Rows {
        let mut builder = WriterBuilder::new();
        builder.terminator(Terminator::CRLF);
        Rows { out: builder.from_writer(Vec::with_capacity(bytes)) }
    }

    /// A cell of text from somebody. What a spreadsheet would take for a formula gets a leading `'`.
    pub fn text(&mut self, text: Option<&str>) -> Result<(), Error> {
        let text = text.unwrap_or_default();
        match text.as_bytes().first() {
            Some(b'=' | b'+' | b'-' | b'@' | b'\t' | b'\r') => self.cell(format!("'{text}")),
            _ => self.cell(text),
        }
    }

    /// A cell as it is.
    pub fn cell(&mut self, bytes: impl AsRef<[u8]>) -> Result<(), Error> {
        self.out.write_field(bytes).map_err(failed)
    }

    /// A cell with a number that is not negative.
    pub fn number(&mut self, number: i64) -> Result<(), Error> {
        let (mut digits, mut left, mut first) = ([b'0'; 20], number.unsigned_abs(), 19);
        loop {
            digits[first] = b'0' + (left % 10) as u8;
            left /= 10;
            if left == 0 {
                return self.cell(&digits[first..]);
            }
            first -= 1;
        }
    }

    /// Ends the row.
    pub fn end(&mut self) -> Result<(), Error> {
        self.out.write_record(None::<&[u8]>).map_err(failed)
    }

    /// The rows as they are sent.
    pub fn finish(self) -> Result<Vec<u8>, Error> {
        self.out.into_inner().map_err(|e| Error::Internal(format!("CSV: {e}")))
    }
}

fn failed(error: csv::Error) -> Error {
    Error::Internal(format!("CSV: {error}"))
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
            let mut rows = Rows::new(100);
            rows.cell("x")?;
            rows.text(text)?;
            rows.number(0)?;
            rows.end()?;
            assert_eq!(rows.finish()?, written.as_bytes(), "{text:?}");
        }
        Ok(())
    }

    #[test]
    fn numbers_have_all_their_digits() -> Result<(), Error> {
        let mut rows = Rows::new(100);
        for number in [0, 7, 10, 1_234_567_890, i64::MAX] {
            rows.number(number)?;
        }
        rows.end()?;
        assert_eq!(rows.finish()?, b"0,7,10,1234567890,9223372036854775807\r\n");
        Ok(())
    }
}
