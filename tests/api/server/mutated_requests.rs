//! Valid requests with random mutations of what decides where a request ends.

/// Valid requests. Bodies are mostly capital letters: what is left of one when its end is misread becomes part of the
/// next request's method, so that the method shows where the body has ended.
const REQUESTS: &[&str] = &[
    "GET /healthz?a=b HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n",
    "HEAD http://x/healthz HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer a\r\n\r\n",
    "POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\nContent-Length: 26\r\n\r\nABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "POST /api/v1/auth/login HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nABCDE",
    "POST http://x:80/api/v1/auth/login HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n\
     1a\r\nABCDEFGHIJKLMNOPQRSTUVWXYZ\r\n0\r\n\r\n",
    "POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n\
     5;a=\"b\"\r\nABCDE\r\n7\r\nFGHIJKL\r\n00\r\nTrailer: x\r\n\r\n",
    "POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\nContent-Length: 48\r\n\r\n\
     0\r\n\r\nSMUGGLED /smuggled HTTP/1.1\r\nHost: x\r\n\r\nABC",
    "POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n\
     30\r\n0\r\n\r\nSMUGGLED /smuggled HTTP/1.1\r\nHost: x\r\n\r\nABC\r\n0\r\n\r\n",
];

/// What follows each mutated request on its connection.
pub const NEXT: &str = "QWERTYUIOPASDFGHJKLZXCVBNM /next HTTP/1.1\r\nHost: x\r\n\r\n";

/// Header lines that parsers have disagreed on, and some that are right.
const HEADERS: &[&str] = &[
    "Content-Length: 5",
    "Content-Length:5",
    "Content-Length:\t5 \t",
    "Content-Length: 005",
    "Content-Length: 0",
    "Content-Length: +5",
    "Content-Length: -5",
    "Content-Length: 0x5",
    "Content-Length: 5,5",
    "Content-Length: 5;a",
    "Content-Length: 5\x0b",
    "Content-Length: 18446744073709551621",
    "Content-Length:\r\n 5",
    "Content-Length : 5",
    "Content_Length: 5",
    "Content-Length\0: 5",
    "X: y\rContent-Length: 5",
    "X: y\nContent-Length: 5",
    "Transfer-Encoding: chunked",
    "transfer-encoding:\tCHUNKED ",
    "Transfer-Encoding: chunked, chunked",
    "Transfer-Encoding: identity",
    "Transfer-Encoding: xchunked",
    "Transfer-Encoding: chunked;a=b",
    "Transfer-Encoding: \"chunked\"",
    "Transfer-Encoding:\x0bchunked",
    "Transfer-Encoding:",
    "Transfer-Encoding:\r\n chunked",
    "Transfer-Encoding : chunked",
    "Transfer_Encoding: chunked",
    "Connection: close",
    "Connection: keep-alive, Content-Length",
    "Host: y",
    "Host:",
    " folded",
    "",
];

/// Bytes that parsers have disagreed on.
const TOKENS: &[&str] = &[
    "\r\n", "\n", "\r", "\r\n\r\n", " ", "\t", "\0", "\x0b", "\u{85}", ":", ";", ";a", ",", "+",
    "-", "_", "0", "0x", "\"", "#", "?", "/", "@",
];

/// The same, longer ones.
const TEXTS: &[&str] = &[
    " HTTP/1.1",
    "0\r\n\r\n",
    "ffffffffffffffff",
    "100000000",
    "SMUGGLED /smuggled HTTP/1.1\r\nHost: x\r\n\r\n",
];

/// Reproducible random numbers (SplitMix64).
pub struct Random(pub u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % limit as u64) as usize
    }

    fn token(&mut self) -> &'static str {
        let tokens = if self.below(6) == 0 { TEXTS } else { TOKENS };
        self.one_of(tokens)
    }

    fn one_of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }

    /// A valid request with one to three mutations, mostly one.
    pub fn mutated_request(&mut self) -> Vec<u8> {
        let mut bytes = self.one_of(REQUESTS).as_bytes().to_vec();
        for _ in 0..[1, 1, 1, 2, 3][self.below(5)] {
            self.mutate(&mut bytes);
        }
        bytes
    }

    fn mutate(&mut self, bytes: &mut Vec<u8>) {
        let at = self.below(bytes.len() + 1);
        let end = (at + 1 + self.below(4)).min(bytes.len());
        match self.below(8) {
            0..3 => {
                let head = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(0);
                let at = self.line_start(&bytes[..head + 2]);
                let line = [self.one_of(HEADERS), "\r\n"].concat();
                bytes.splice(at..at, line.bytes());
            }
            3 => {
                let at = self.line_start(bytes);
                bytes.splice(at..at, self.token().bytes());
            }
            4 => drop(bytes.splice(at..at, self.token().bytes())),
            5 => drop(bytes.splice(at..end, [])),
            // A number becomes another one.
            6 => {
                let digits: Vec<_> =
                    (0..bytes.len()).filter(|i| bytes[*i].is_ascii_digit()).collect();
                if let Some(at) = digits.get(self.below(digits.len().max(1))) {
                    bytes[*at] = b"0123456789abcdefABCDEF"[self.below(22)];
                }
            }
            _ if at == end => {}
            _ => {
                let byte = bytes[at];
                bytes[at] =
                    [byte ^ 0x20, byte.wrapping_add(1), self.below(256) as u8][self.below(3)];
            }
        }
    }

    /// Where a line but the first begins, or the end.
    fn line_start(&mut self, bytes: &[u8]) -> usize {
        let starts: Vec<_> = (1..=bytes.len()).filter(|i| bytes[i - 1] == b'\n').collect();
        starts.get(self.below(starts.len().max(1))).copied().unwrap_or(bytes.len())
    }
}
