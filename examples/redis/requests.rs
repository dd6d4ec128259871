//! Commands of RESP2 in the bytes that a client sends. Nothing is copied: an argument is a place in the buffer.
//!
//! Filled and parsed by `connection`, read by `commands`. The format is that of the RESP specification
//! (<https://redis.io/docs/latest/develop/reference/protocol-spec>), the limits and the words of its errors are those
//! of Redis 7.
//!
//! The parser goes on where it stopped, so a request that comes byte by byte costs no more than one that comes at once.
//! The buffer grows with what has arrived, whatever lengths a client announces.
//!
//! Rejected: a `Vec` for each argument (an allocation each, and a copy that `GET` has no use for).

use std::fmt;

/// A bulk string may be this long (`proto-max-bulk-len`).
pub(crate) const MAX_BULK: i64 = 512 << 20;
/// A command may have this many arguments.
pub(crate) const MAX_ARGS: i64 = 1 << 20;
/// An inline command and a header may be this long.
const MAX_LINE: usize = 64 << 10;
/// A command may have this many bytes (`client-query-buffer-limit`).
const MAX_REQUEST: usize = 1 << 30;

/// The size of a buffer that has not had to grow.
pub(crate) const ROOM: usize = 16 << 10;
/// A part of a command up to here moves into a buffer of its own size while the rest is waited for.
const SMALL: usize = 2 << 10;
/// This many commands are taken at once, so that one client does not keep the thread for itself.
const BATCH: usize = 1024;

/// What a client has sent and the server has not answered.
#[derive(Default)]
pub(crate) struct Requests {
    /// Of which the first `filled` came from the client.
    bytes: Vec<u8>,
    filled: usize,
    /// Where the parser is.
    at: usize,
    args: Vec<Arg>,
    /// Where the complete commands end: in `args`.
    ends: Vec<usize>,
    /// Where the last of them ends: in `bytes`.
    done: usize,
    /// Arguments that the command at `done` still lacks.
    lacking: usize,
}

/// The place of an argument in the buffer.
#[derive(Clone, Copy)]
struct Arg {
    start: u32,
    end: u32,
}

/// A command: its name and what follows it.
#[derive(Clone, Copy)]
pub(crate) struct Command<'a> {
    bytes: &'a [u8],
    args: &'a [Arg],
}

/// A client that doesn't speak the protocol, in the words that Redis has for it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Malformed {
    TooManyArgs,
    BulkLength,
    NoBulk(u8),
    LongCount,
    LongLength,
    LongLine,
    LongRequest,
    Quotes,
}

impl Requests {
    /// Where the next bytes of the client go. The error is that there are too many already.
    pub(crate) fn room(&mut self) -> Result<&mut [u8], Malformed> {
        if self.filled == self.bytes.len() {
            if self.filled >= MAX_REQUEST {
                return Err(Malformed::LongRequest);
            }
            self.bytes.resize(ROOM.max(2 * self.filled), 0);
        }
        Ok(&mut self.bytes[self.filled..])
    }

    /// Says that `count` bytes came into the room.
    pub(crate) fn filled(&mut self, count: usize) {
        self.filled += count;
    }

    /// Finds the commands that are complete, and says whether there may be more of them.
    pub(crate) fn parse(&mut self) -> Result<bool, Malformed> {
        while self.ends.len() < BATCH {
            if !self.parse_command()? {
                return Ok(false);
            }
            if self.args.len() > self.ends.last().copied().unwrap_or(0) {
                self.ends.push(self.args.len());
            }
            self.done = self.at;
        }
        Ok(true)
    }

    /// The complete commands.
    pub(crate) fn commands(&self) -> impl Iterator<Item = Command<'_>> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let args = &self.args[start..end];
            start = end;
            Command { bytes: &self.bytes, args }
        })
    }

    /// Forgets the complete commands.
    pub(crate) fn finish(&mut self) {
        let (done, args) = (self.done, self.ends.last().copied().unwrap_or(0));
        self.ends.clear();
        if done == self.filled {
            self.args.clear();
            (self.filled, self.at, self.done) = (0, 0, 0);
        } else if done > 0 {
            self.bytes.copy_within(done..self.filled, 0);
            self.args.drain(..args);
            self.args.iter_mut().for_each(|arg| {
                arg.start -= done as u32;
                arg.end -= done as u32;
            });
            (self.filled, self.at, self.done) = (self.filled - done, self.at - done, 0);
        }
    }

    /// Whether everything has been answered.
    pub(crate) fn is_empty(&self) -> bool {
        self.filled == 0
    }

    /// Gives memory back that a wait for the rest of a command does not need.
    pub(crate) fn shrink(&mut self) {
        if self.filled <= SMALL {
            self.bytes.truncate(self.filled);
            self.bytes.shrink_to_fit();
        }
    }

    /// Whether the buffer has grown, so that it should not be kept for others.
    pub(crate) fn is_large(&self) -> bool {
        self.bytes.capacity() > 4 * ROOM || self.args.capacity() > 4 * BATCH
    }

    /// Goes on with a command, and says whether it is complete. An empty one leaves no argument.
    fn parse_command(&mut self) -> Result<bool, Malformed> {
        if self.lacking == 0 {
            if self.at == self.filled {
                return Ok(false);
            }
            if self.bytes[self.at] != b'*' {
                return self.parse_inline();
            }
            let Some((count, next)) = self.header(Malformed::LongCount)? else { return Ok(false) };
            let count = count.filter(|&count| count <= MAX_ARGS).ok_or(Malformed::TooManyArgs)?;
            self.at = next;
            self.lacking = count.max(0) as usize;
        }
        while self.lacking > 0 {
            if !self.parse_bulk()? {
                return Ok(false);
            }
            self.lacking -= 1;
        }
        Ok(true)
    }

    fn parse_bulk(&mut self) -> Result<bool, Malformed> {
        if self.at == self.filled {
            return Ok(false);
        }
        if self.bytes[self.at] != b'$' {
            return Err(Malformed::NoBulk(self.bytes[self.at]));
        }
        let Some((length, start)) = self.header(Malformed::LongLength)? else { return Ok(false) };
        let length = length.filter(|length| (0..=MAX_BULK).contains(length)).ok_or(Malformed::BulkLength)?;
        let end = start + length as usize;
        // The line end is not checked: Redis does not do so either.
        if end + 2 > self.filled {
            return Ok(false);
        }
        self.args.push(Arg { start: start as u32, end: end as u32 });
        self.at = end + 2;
        Ok(true)
    }

    /// The number in the header at `at`, if it is one, and where the next line begins. `None` if the header is not
    /// complete.
    #[inline]
    fn header(&self, too_long: Malformed) -> Result<Option<(Option<i64>, usize)>, Malformed> {
        let line = &self.bytes[self.at + 1..self.filled];
        // Nearly all have a digit or two.
        match *line {
            [ones @ b'0'..=b'9', b'\r', _, ..] => return Ok(Some((Some((ones - b'0').into()), self.at + 4))),
            [tens @ b'1'..=b'9', ones @ b'0'..=b'9', b'\r', _, ..] => {
                let number = 10 * (tens - b'0') + (ones - b'0');
                return Ok(Some((Some(number.into()), self.at + 5)));
            }
            _ => {}
        }
        match line.iter().position(|&byte| byte == b'\r') {
            Some(end) if end + 1 < line.len() => Ok(Some((integer(&line[..end]), self.at + 1 + end + 2))),
            None if line.len() > MAX_LINE => Err(too_long),
            _ => Ok(None),
        }
    }

    /// A command as a person types it: words on a line.
    fn parse_inline(&mut self) -> Result<bool, Malformed> {
        let Some(length) = self.bytes[self.at..self.filled].iter().position(|&byte| byte == b'\n') else {
            return if self.filled - self.at > MAX_LINE { Err(Malformed::LongLine) } else { Ok(false) };
        };
        let end = self.at + length;
        let mut words = Words { line: &mut self.bytes[..end], at: self.at, out: self.at };
        while let Some(word) = words.next().ok_or(Malformed::Quotes)? {
            self.args.push(word);
        }
        self.at = end + 1;
        Ok(true)
    }
}

impl<'a> Command<'a> {
    /// How many there are, the name included.
    pub(crate) fn len(self) -> usize {
        self.args.len()
    }

    /// The argument with this number; the name is the first one.
    pub(crate) fn get(self, index: usize) -> &'a [u8] {
        let Arg { start, end } = self.args[index];
        &self.bytes[start as usize..end as usize]
    }

    /// All arguments from this one on.
    pub(crate) fn from(self, index: usize) -> impl ExactSizeIterator<Item = &'a [u8]> {
        (index..self.len()).map(move |index| self.get(index))
    }
}

/// A number as Redis takes it: decimal, without leading zeros, blanks or a plus.
pub(crate) fn integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_negative = digits.len() < text.len();
    match digits {
        [b'0'] if !is_negative => return Some(0),
        [b'1'..=b'9', ..] => {}
        _ => return None,
    }
    let mut number = 0i64;
    for &byte in digits {
        let digit = i64::from(byte.wrapping_sub(b'0'));
        if digit > 9 {
            return None;
        }
        number = number.checked_mul(10)?;
        number = if is_negative { number.checked_sub(digit)? } else { number.checked_add(digit)? };
    }
    Some(number)
}

/// The words of a line, with quotes: `"..."` with escapes, `'...'` with `\'` alone. The unquoted words overwrite the
/// line, as they are never longer.
struct Words<'a> {
    line: &'a mut [u8],
    at: usize,
    out: usize,
}

impl Words<'_> {
    /// The next word, `Some(None)` at the end of the line; `None` if quotes are not closed, or not followed by a blank.
    fn next(&mut self) -> Option<Option<Arg>> {
        while self.peek().is_some_and(is_blank) {
            self.at += 1;
        }
        if self.peek().is_none() {
            return Some(None);
        }
        let start = self.out as u32;
        let mut quote = None;
        loop {
            let byte = self.peek();
            self.at += 1;
            match (quote, byte) {
                (None, None) => break,
                (Some(_), None) => return None,
                (None, Some(byte)) if is_blank(byte) => break,
                (None, Some(byte @ (b'"' | b'\''))) => quote = Some(byte),
                (Some(open), Some(byte)) if byte == open => {
                    quote = None;
                    if self.peek().is_some_and(|next| !is_blank(next)) {
                        return None;
                    }
                }
                (Some(b'"'), Some(b'\\')) => self.escape()?,
                (Some(b'\''), Some(b'\\')) if self.peek() == Some(b'\'') => {
                    self.at += 1;
                    self.put(b'\'');
                }
                (_, Some(byte)) => self.put(byte),
            }
        }
        Some(Some(Arg { start, end: self.out as u32 }))
    }

    /// What follows a backslash between double quotes.
    fn escape(&mut self) -> Option<()> {
        let byte = self.peek()?;
        self.at += 1;
        let hex = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
        let plain = match byte {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'b' => 8,
            b'a' => 7,
            b'x' => match self.line[self.at..] {
                [high, low, ..] if hex(high).is_some() && hex(low).is_some() => {
                    self.at += 2;
                    16 * hex(high)? + hex(low)?
                }
                _ => b'x',
            },
            other => other,
        };
        self.put(plain);
        Some(())
    }

    fn put(&mut self, byte: u8) {
        self.line[self.out] = byte;
        self.out += 1;
    }

    fn peek(&self) -> Option<u8> {
        self.line.get(self.at).copied()
    }
}

fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 11 || byte == 0
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ERR Protocol error: ")?;
        match self {
            Malformed::TooManyArgs => f.write_str("invalid multibulk length"),
            Malformed::BulkLength => f.write_str("invalid bulk length"),
            Malformed::NoBulk(found) => write!(f, "expected '$', got '{}'", *found as char),
            Malformed::LongCount => f.write_str("too big mbulk count string"),
            Malformed::LongLength => f.write_str("too big bulk count string"),
            Malformed::LongLine => f.write_str("too big inline request"),
            Malformed::LongRequest => f.write_str("too big request"),
            Malformed::Quotes => f.write_str("unbalanced quotes in request"),
        }
    }
}
