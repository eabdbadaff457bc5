//! The chunked coding (RFC 9112, 7.1): pure decoding, a step at a time.

/// Longest line of a chunk's size, bytes; extensions are read past.
const MAX_LINE: usize = 256;
/// Longest trailer section, bytes; it is read past.
const MAX_TRAILER: usize = 8 * 1024;

/// The coding was broken.
#[derive(Debug, PartialEq, Eq)]
pub struct Malformed;

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Read more, there is no whole line yet.
    More,
    /// The next bytes, so many, are the coding's own.
    Skip(usize),
    /// The next bytes, at most so many, are content.
    Content(u64),
    /// The body has ended.
    End,
}

/// Where in a body the decoder is.
#[derive(Debug)]
pub enum ChunkedDecoder {
    /// Before a line with a size.
    Size,
    /// Within a chunk; bytes left.
    Content(u64),
    /// Before the line end after a chunk.
    Gap,
    /// After the last chunk; bytes of trailers seen.
    Trailer(usize),
    /// After the end.
    End,
}

impl ChunkedDecoder {
    /// Looks at what follows. After `Content` the caller says what it took.
    pub fn step(&mut self, bytes: &[u8]) -> Result<Step, Malformed> {
        match *self {
            ChunkedDecoder::Content(left) => Ok(Step::Content(left)),
            ChunkedDecoder::End => Ok(Step::End),
            ChunkedDecoder::Size => match line(bytes, MAX_LINE)? {
                None => Ok(Step::More),
                Some(line) => {
                    *self = match size(line)? {
                        0 => ChunkedDecoder::Trailer(0),
                        size => ChunkedDecoder::Content(size),
                    };
                    Ok(Step::Skip(line.len()))
                }
            },
            ChunkedDecoder::Gap => match line(bytes, 2)? {
                None => Ok(Step::More),
                Some(_) => {
                    *self = ChunkedDecoder::Size;
                    Ok(Step::Skip(2))
                }
            },
            ChunkedDecoder::Trailer(seen) => match line(bytes, MAX_TRAILER - seen)? {
                None => Ok(Step::More),
                Some(line) => {
                    *self = match line.len() {
                        2 => ChunkedDecoder::End,
                        length => ChunkedDecoder::Trailer(seen + length),
                    };
                    Ok(Step::Skip(line.len()))
                }
            },
        }
    }

    /// The caller took so many bytes of content, at most as many as it was told.
    pub fn took(&mut self, count: u64) {
        if let ChunkedDecoder::Content(left) = self {
            *left -= count;
            if *left == 0 {
                *self = ChunkedDecoder::Gap;
            }
        }
    }
}

/// The first line with its end, if it is whole.
fn line(bytes: &[u8], most: usize) -> Result<Option<&[u8]>, Malformed> {
    match bytes.iter().take(most).position(|byte| *byte == b'\n') {
        Some(0) => Err(Malformed),
        Some(at) if bytes[at - 1] == b'\r' => Ok(Some(&bytes[..=at])),
        Some(_) => Err(Malformed),
        None if bytes.len() >= most => Err(Malformed),
        None => Ok(None),
    }
}

/// The crate takes an empty size for 0 and any byte in an extension.
fn size(line: &[u8]) -> Result<u64, Malformed> {
    let text = &line[..line.len() - 2];
    let starts = text.first().is_some_and(u8::is_ascii_hexdigit);
    if !starts || text.iter().any(|b| b.is_ascii_control() && *b != b'\t') {
        return Err(Malformed);
    }
    match httparse::parse_chunk_size(line) {
        Ok(httparse::Status::Complete((length, size))) if length == line.len() => Ok(size),
        _ => Err(Malformed),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What the decoder makes of `bytes` that arrive `piece` at a time: the content, how much it
    /// used, and whether the body ended.
    fn decode(bytes: &[u8], piece: usize) -> Result<(Vec<u8>, usize, bool), Malformed> {
        let (mut chunks, mut content) = (ChunkedDecoder::Size, Vec::new());
        let (mut at, mut arrived) = (0, 0);
        loop {
            match chunks.step(&bytes[at..arrived])? {
                Step::End => return Ok((content, at, true)),
                Step::Skip(count) => at += count,
                Step::Content(most) if at < arrived => {
                    let count = most.min((arrived - at) as u64);
                    content.extend_from_slice(&bytes[at..at + count as usize]);
                    at += count as usize;
                    chunks.took(count);
                }
                _ if arrived == bytes.len() => return Ok((content, at, false)),
                _ => arrived = (arrived + piece).min(bytes.len()),
            }
        }
    }

    /// The same by `httparse` alone, sizes only: where content starts and how long it is.
    fn framed_by_the_crate(mut bytes: &[u8]) -> Option<Vec<u8>> {
        let mut content = Vec::new();
        loop {
            let Ok(httparse::Status::Complete((line, size))) = httparse::parse_chunk_size(bytes)
            else {
                return None;
            };
            if size == 0 {
                return Some(content);
            }
            let (chunk, rest) = bytes.get(line..)?.split_at_checked(size.try_into().ok()?)?;
            content.extend_from_slice(chunk);
            bytes = rest.strip_prefix(b"\r\n")?;
        }
    }

    fn body() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            4 => proptest::collection::vec(any::<u8>(), 1..40)
                .prop_map(|data| [format!("{:x}\r\n", data.len()).as_bytes(), &data, b"\r\n"].concat()),
            1 => "[0-9a-fA-F]{0,17}[ \t;=a\r\n]{0,4}\r?\n".prop_map(String::into_bytes),
            1 => Just(b"0\r\n\r\n".to_vec()),
            1 => proptest::collection::vec(any::<u8>(), 0..8),
        ];
        proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
    }

    #[test]
    fn what_is_accepted_is_framed_as_the_crate_does_however_it_arrives() {
        crate::server::repeat(&(body(), 1..64_usize), |(bytes, piece)| {
            let whole = decode(&bytes, bytes.len().max(1));
            prop_assert_eq!(&decode(&bytes, piece), &whole, "in pieces");
            if let Ok((content, _, true)) = whole {
                prop_assert_eq!(framed_by_the_crate(&bytes), Some(content));
            }
            Ok(())
        });
    }
}
