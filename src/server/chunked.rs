//! Decoder of the chunked transfer coding (RFC 9112, section 7.1). It does no I/O: it looks at the bytes that are
//! buffered and says what they are.

use super::limits::{MAX_CHUNK_LINE, MAX_TRAILERS};

/// The bytes do not follow the chunked coding.
#[derive(Debug, PartialEq, Eq)]
pub struct MalformedChunk;

/// The kind of the next bytes of a chunked body.
#[derive(Debug, PartialEq, Eq)]
pub enum ChunkedPart {
    /// The start of a line of framing. More bytes are needed to tell.
    Incomplete,
    /// This many bytes of framing: skip them, they are not content.
    Framing(usize),
    /// At most this many bytes of content.
    Content(u64),
    /// Nothing: the body has ended.
    End,
}

/// The position within a chunked body.
#[derive(Debug, Default)]
pub enum ChunkedDecoder {
    /// Before the line with the size of a chunk.
    #[default]
    SizeLine,
    /// Inside a chunk, with this many bytes of content left.
    Content(u64),
    /// Before the line end that follows the content of a chunk.
    ChunkEnd,
    /// After the last chunk, with this many bytes of trailers read.
    Trailers(usize),
    /// After the whole body.
    End,
}

impl ChunkedDecoder {
    /// Returns the kind of the next bytes, of which `bytes` have arrived. The decoder moves past framing by itself;
    /// after content, [`ChunkedDecoder::consume_content`] moves it.
    pub fn next_part(&mut self, bytes: &[u8]) -> Result<ChunkedPart, MalformedChunk> {
        let max_line = match *self {
            ChunkedDecoder::Content(left) => return Ok(ChunkedPart::Content(left)),
            ChunkedDecoder::End => return Ok(ChunkedPart::End),
            ChunkedDecoder::SizeLine => MAX_CHUNK_LINE,
            ChunkedDecoder::ChunkEnd => 2,
            ChunkedDecoder::Trailers(read) => MAX_TRAILERS - read,
        };
        let Some(line) = complete_line(bytes, max_line)? else {
            return Ok(ChunkedPart::Incomplete);
        };
        *self = match *self {
            ChunkedDecoder::SizeLine => match chunk_size(line)? {
                0 => ChunkedDecoder::Trailers(0),
                size => ChunkedDecoder::Content(size),
            },
            ChunkedDecoder::Trailers(read) if line != b"\r\n" => {
                ChunkedDecoder::Trailers(read + line.len())
            }
            ChunkedDecoder::Trailers(_) => ChunkedDecoder::End,
            // `ChunkEnd`: the other two have returned above.
            _ => ChunkedDecoder::SizeLine,
        };
        Ok(ChunkedPart::Framing(line.len()))
    }

    /// Moves past `count` bytes of content, at most as many as [`ChunkedPart::Content`] said.
    pub fn consume_content(&mut self, count: u64) {
        if let ChunkedDecoder::Content(left) = self {
            *left -= count;
            if *left == 0 {
                *self = ChunkedDecoder::ChunkEnd;
            }
        }
    }
}

/// The first line with its line end, or `None` if that has not arrived. A line over `max` bytes is malformed, and
/// so is one that ends without a carriage return.
fn complete_line(bytes: &[u8], max: usize) -> Result<Option<&[u8]>, MalformedChunk> {
    match bytes.iter().take(max).position(|byte| *byte == b'\n') {
        Some(at) if at > 0 && bytes[at - 1] == b'\r' => Ok(Some(&bytes[..=at])),
        None if bytes.len() < max => Ok(None),
        _ => Err(MalformedChunk),
    }
}

/// The size that a chunk-size line gives. `httparse` reads an empty size as 0 and allows any byte in an extension;
/// both are refused here before it looks.
fn chunk_size(line: &[u8]) -> Result<u64, MalformedChunk> {
    let text = &line[..line.len() - 2];
    let has_size = text.first().is_some_and(u8::is_ascii_hexdigit);
    if !has_size || text.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
        return Err(MalformedChunk);
    }
    match httparse::parse_chunk_size(line) {
        Ok(httparse::Status::Complete((length, size))) if length == line.len() => Ok(size),
        _ => Err(MalformedChunk),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes `bytes` that arrive `piece` at a time. Returns the content, the number of bytes consumed and whether the
    /// body has ended.
    fn decode(bytes: &[u8], piece: usize) -> Result<(Vec<u8>, usize, bool), MalformedChunk> {
        let (mut decoder, mut content) = (ChunkedDecoder::default(), Vec::new());
        let (mut at, mut arrived) = (0, 0);
        loop {
            match decoder.next_part(&bytes[at..arrived])? {
                ChunkedPart::End => return Ok((content, at, true)),
                ChunkedPart::Framing(count) => at += count,
                ChunkedPart::Content(left) if at < arrived => {
                    let count = left.min((arrived - at) as u64);
                    content.extend_from_slice(&bytes[at..at + count as usize]);
                    at += count as usize;
                    decoder.consume_content(count);
                }
                _ if arrived == bytes.len() => return Ok((content, at, false)),
                _ => arrived = (arrived + piece).min(bytes.len()),
            }
        }
    }

    /// The content of a complete body, and how many bytes it has with its trailers (RFC 9112, section 7.1).
    fn read_chunks(bytes: &[u8]) -> Option<(Vec<u8>, usize)> {
        fn line<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
            let (line, after) = rest.split_at(memchr::memmem::find(rest, b"\r\n")?);
            *rest = &after[2..];
            Some(line)
        }
        let (mut content, mut rest) = (Vec::new(), bytes);
        loop {
            let line = line(&mut rest)?;
            if line.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
                return None;
            }
            let size = line.split(|byte| *byte == b';').next()?.trim_ascii_end();
            let size = str::from_utf8(size).ok()?;
            if !size.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return None;
            }
            match usize::from_str_radix(size, 16).ok()? {
                0 => break,
                size => content.extend_from_slice(rest.split_off(..size)?),
            }
            rest = rest.strip_prefix(b"\r\n")?;
        }
        while !line(&mut rest)?.is_empty() {}
        Some((content, bytes.len() - rest.len()))
    }

    /// Bodies are the same however they arrive, and accepted ones are framed as the standard says.
    fn check_body(bytes: &[u8], piece: usize) {
        let whole = decode(bytes, bytes.len().max(1));
        assert_eq!(&decode(bytes, piece), &whole, "in pieces");
        if let Ok((content, end, true)) = whole {
            assert_eq!(read_chunks(bytes), Some((content, end)));
        }
    }

    #[test]
    fn fuzz_chunked_bodies() {
        fuzz::check("chunked", |input| {
            if let Some((piece, body)) = input.split_first() {
                check_body(body, 1 + usize::from(*piece));
            }
        });
    }
}
