//! What the commands do: each takes its arguments from the request and leaves one reply.
//!
//! Called by `actor` and `local` with a batch. The replies, errors among them, are worded as those of Redis 7
//! (<https://redis.io/docs/latest/commands>).

use std::time::Duration;

use mini::time::Instant;

use super::batch::Batch;
use super::replies::Replies;
use super::requests::{Command, integer};
use super::store::Store;

/// Keys that are due and taken out beside each batch; the others wait for the task that does nothing else.
const DUE: usize = 16;

/// How many commands `run_one` has.
const COMMANDS: i64 = 18;

const SYNTAX: &str = "ERR syntax error";
const NOT_A_NUMBER: &str = "ERR value is not an integer or out of range";

/// What `CONFIG GET` knows: enough for the usual clients.
const CONFIG: [(&str, &str); 4] = [("appendonly", "no"), ("databases", "1"), ("maxmemory", "0"), ("save", "")];

/// Why a command has not done what it says.
enum Failure {
    Arity,
    Words(&'static str),
    Text(String),
    Unknown,
}

type Outcome = Result<(), Failure>;

impl From<&'static str> for Failure {
    fn from(words: &'static str) -> Self {
        Failure::Words(words)
    }
}

/// Runs the commands of a batch.
pub(crate) fn run(store: &mut Store, batch: &mut Batch) {
    for command in batch.requests.commands() {
        if let Err(failure) = run_one(store, command, &mut batch.replies) {
            refuse(command, failure, &mut batch.replies);
        } else if is(command, b"QUIT") {
            batch.is_last = true;
            break;
        }
    }
    store.remove_due(DUE);
}

fn run_one(store: &mut Store, command: Command<'_>, replies: &mut Replies) -> Outcome {
    let name = command.get(0);
    let mut upper = [0; 8];
    let Some(upper) = upper.get_mut(..name.len()) else { return Err(Failure::Unknown) };
    upper.copy_from_slice(name);
    upper.make_ascii_uppercase();
    let count = command.len();
    match (&*upper, count) {
        (b"GET", 2) => get(store, command.get(1), replies),
        (b"SET", 3..) => return set(store, command, replies),
        (b"PING", 1) => replies.raw("+PONG\r\n"),
        (b"PING", 2) | (b"ECHO", 2) => replies.bulk(command.get(1)),
        (b"SELECT", 2) => return select(command, replies),
        (b"DEL", 2..) => replies.integer(command.from(1).filter(|key| store.remove(key)).count() as i64),
        (b"EXISTS", 2..) => replies.integer(command.from(1).filter(|key| store.get(key).is_some()).count() as i64),
        (b"INCR", 2) => return add(store, command.get(1), 1, replies),
        (b"DECR", 2) => return add(store, command.get(1), -1, replies),
        (b"EXPIRE", 3..) => return expire(store, command, replies),
        (b"TTL", 2) => ttl(store, command.get(1), replies),
        (b"MGET", 2..) => {
            replies.array(count - 1);
            command.from(1).for_each(|key| get(store, key, replies));
        }
        (b"MSET", 3..) if count % 2 == 1 => {
            (1..count).step_by(2).for_each(|index| store.set(command.get(index), command.get(index + 1), None));
            replies.ok();
        }
        (b"DBSIZE", 1) => replies.integer(store.len() as i64),
        (b"FLUSHALL", 1..=2) => return flush(store, command, replies),
        (b"CONFIG", 2..) => return config(command, replies),
        (b"COMMAND", 1..) => return list_commands(command, replies),
        (b"QUIT", _) => replies.ok(),
        (
            b"GET" | b"SET" | b"PING" | b"ECHO" | b"SELECT" | b"DEL" | b"EXISTS" | b"INCR" | b"DECR" | b"EXPIRE"
            | b"TTL" | b"MGET" | b"MSET" | b"DBSIZE" | b"CONFIG",
            _,
        ) => return Err(Failure::Arity),
        (b"FLUSHALL", _) => return Err(SYNTAX.into()),
        _ => return Err(Failure::Unknown),
    }
    Ok(())
}

fn get(store: &Store, key: &[u8], replies: &mut Replies) {
    match store.get(key) {
        Some(entry) => replies.value(entry.value()),
        None => replies.null(),
    }
}

/// `SET key value [NX | XX] [EX seconds | PX milliseconds]`
fn set(store: &mut Store, command: Command<'_>, replies: &mut Replies) -> Outcome {
    let (key, value) = (command.get(1), command.get(2));
    let (mut wants_present, mut time) = (None, None);
    let mut options = command.from(3);
    while let Some(option) = options.next() {
        let is = |name: &[u8]| option.eq_ignore_ascii_case(name);
        if (is(b"NX") || is(b"XX")) && wants_present.is_none_or(|wants| wants == is(b"XX")) {
            wants_present = Some(is(b"XX"));
        } else if (is(b"EX") || is(b"PX")) && time.is_none() {
            time = Some((options.next().ok_or(SYNTAX)?, if is(b"EX") { 1000 } else { 1 }));
        } else {
            return Err(SYNTAX.into());
        }
    }
    let deadline = match time {
        None => None,
        Some((number, unit)) => {
            let number = integer(number).ok_or(NOT_A_NUMBER)?;
            let after = milliseconds(number, unit).filter(|&after| after > 0);
            Some(after.and_then(deadline).ok_or("ERR invalid expire time in 'set' command")?)
        }
    };
    if wants_present.is_some_and(|wants| store.get(key).is_some() != wants) {
        replies.null();
    } else {
        store.set(key, value, deadline);
        replies.ok();
    }
    Ok(())
}

fn select(command: Command<'_>, replies: &mut Replies) -> Outcome {
    match integer(command.get(1)) {
        Some(0) => replies.ok(),
        Some(_) => return Err("ERR DB index is out of range".into()),
        None => return Err(NOT_A_NUMBER.into()),
    }
    Ok(())
}

/// `INCR` and `DECR`: the key keeps its deadline.
fn add(store: &mut Store, key: &[u8], by: i64, replies: &mut Replies) -> Outcome {
    let (before, deadline) = match store.get(key) {
        Some(entry) => (integer(entry.value()).ok_or(NOT_A_NUMBER)?, entry.deadline()),
        None => (0, None),
    };
    let after = before.checked_add(by).ok_or("ERR increment or decrement would overflow")?;
    store.set(key, after.to_string().as_bytes(), deadline);
    replies.integer(after);
    Ok(())
}

/// `EXPIRE key seconds`. A time that is over removes the key.
fn expire(store: &mut Store, command: Command<'_>, replies: &mut Replies) -> Outcome {
    let key = command.get(1);
    if let Some(option) = command.from(3).next() {
        return Err(Failure::Text(format!("ERR Unsupported option {}", String::from_utf8_lossy(option))));
    }
    let seconds = integer(command.get(2)).ok_or(NOT_A_NUMBER)?;
    let invalid = "ERR invalid expire time in 'expire' command";
    let was_there = match milliseconds(seconds, 1000).ok_or(invalid)? {
        after @ 1.. => store.expire(key, deadline(after).ok_or(invalid)?),
        _ => store.remove(key),
    };
    replies.integer(was_there.into());
    Ok(())
}

/// `number` units, unless that is longer than Redis can count in 64 bits from 1970 on.
fn milliseconds(number: i64, unit: i64) -> Option<i64> {
    const SINCE_1970: i64 = 1 << 42; // and up to the year 2109
    number.checked_mul(unit).filter(|&after| after <= i64::MAX - SINCE_1970)
}

fn deadline(after: i64) -> Option<Instant> {
    Instant::now().checked_add(Duration::from_millis(after.try_into().ok()?))
}

/// Whole seconds, rounded; -1 for a key that stays, -2 for none.
fn ttl(store: &Store, key: &[u8], replies: &mut Replies) {
    replies.integer(match store.get(key).map(|entry| entry.deadline()) {
        None => -2,
        Some(None) => -1,
        Some(Some(deadline)) => {
            let left = deadline.saturating_duration_since(Instant::now()).as_millis() as i64;
            (left + 500) / 1000
        }
    });
}

fn flush(store: &mut Store, command: Command<'_>, replies: &mut Replies) -> Outcome {
    if command.from(1).any(|how| !how.eq_ignore_ascii_case(b"SYNC") && !how.eq_ignore_ascii_case(b"ASYNC")) {
        return Err(SYNTAX.into());
    }
    store.clear();
    replies.ok();
    Ok(())
}

/// `CONFIG GET pattern...`
fn config(command: Command<'_>, replies: &mut Replies) -> Outcome {
    if !command.get(1).eq_ignore_ascii_case(b"GET") {
        return Err(unknown_part(command, "CONFIG"));
    }
    if command.len() == 2 {
        return Err("ERR wrong number of arguments for 'config|get' command".into());
    }
    let is_asked = |name: &str| command.from(2).any(|pattern| matches(pattern, name.as_bytes()));
    let found = CONFIG.iter().filter(|(name, _)| is_asked(name));
    replies.array(2 * found.clone().count());
    for (name, value) in found {
        replies.bulk(name.as_bytes());
        replies.bulk(value.as_bytes());
    }
    Ok(())
}

/// `COMMAND [COUNT | DOCS ... | INFO ...]`: no descriptions, so clients take this for an old server.
fn list_commands(command: Command<'_>, replies: &mut Replies) -> Outcome {
    let part = command.from(1).next().unwrap_or(b"DOCS");
    if part.eq_ignore_ascii_case(b"COUNT") {
        replies.integer(COMMANDS);
    } else if part.eq_ignore_ascii_case(b"DOCS") || part.eq_ignore_ascii_case(b"INFO") {
        replies.array(0);
    } else {
        return Err(unknown_part(command, "COMMAND"));
    }
    Ok(())
}

fn unknown_part(command: Command<'_>, name: &str) -> Failure {
    let part = &command.get(1)[..command.get(1).len().min(128)];
    Failure::Text(format!("ERR unknown subcommand '{}'. Try {name} HELP.", String::from_utf8_lossy(part)))
}

fn refuse(command: Command<'_>, failure: Failure, replies: &mut Replies) {
    let name = String::from_utf8_lossy(&command.get(0)[..command.get(0).len().min(128)]);
    match failure {
        Failure::Words(words) => replies.error(words),
        Failure::Text(text) => replies.error(text),
        Failure::Arity => {
            replies.error(format_args!("ERR wrong number of arguments for '{}' command", name.to_lowercase()));
        }
        Failure::Unknown => {
            let mut shown = String::new();
            for arg in command.from(1) {
                if shown.len() >= 128 {
                    break;
                }
                let arg = &arg[..arg.len().min(128 - shown.len())];
                shown.push_str(&format!("'{}' ", String::from_utf8_lossy(arg)));
            }
            replies.error(format_args!("ERR unknown command '{name}', with args beginning with: {shown}"));
        }
    }
}

fn is(command: Command<'_>, name: &[u8]) -> bool {
    command.get(0).eq_ignore_ascii_case(name)
}

/// Whether a name fits a pattern with `*` and `?`, in either case.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        ([b'*', rest @ ..], _) => (0..=name.len()).any(|skipped| matches(rest, &name[skipped..])),
        ([b'?', rest @ ..], [_, name @ ..]) => matches(rest, name),
        ([first, rest @ ..], [byte, name @ ..]) => first.eq_ignore_ascii_case(byte) && matches(rest, name),
        _ => false,
    }
}
