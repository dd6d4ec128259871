//! The arguments of an attribute, `name = value` with commas between. Each is checked alone; only if all are right
//! alone are they checked together, so that a mistyped `flavor` does not make `start_paused` look wrong too.
//!
//! Called by `expand`.
//!
//! Rejected:
//! - Checking the type of `worker_threads` beyond a plain literal: an expression goes to the builder as it is, and
//!   rustc says better what is wrong with it.

use std::fmt;

use proc_macro::{Delimiter, Group, Ident, Literal, Span, TokenStream, TokenTree};

use crate::error::Error;
use crate::literal::{is_integer, is_zero, milliseconds, string_content};
use crate::parse::{is_ident, is_punct, transparent};

const KNOWN_OF_MAIN: &str = "`flavor`, `worker_threads`, `start_paused`, `main_thread`, `grace`, `dump`, `warnings` \
     and `crate`";
const KNOWN_OF_TEST: &str = "`flavor`, `worker_threads`, `start_paused`, `main_thread`, `grace`, `dump`, `warnings`, \
     `sim`, `seeds`, `time_limit`, `step_limit` and `crate`";
const KNOWN_WITH_SIM: &str = "`sim`, `seeds`, `time_limit`, `step_limit` and `crate`";
const FLAVORS: &str = "\"current_thread\" and \"multi_thread\"";

/// The attribute that is expanded; displayed as the user writes it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    Main,
    Test,
}

/// The runtime to build.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavor {
    CurrentThread,
    MultiThread,
}

/// The arguments, checked.
pub(crate) struct Args {
    pub(crate) flavor: Flavor,
    /// The expression, as written.
    pub(crate) worker_threads: Option<Vec<TokenTree>>,
    /// `true` or `false`, as written.
    pub(crate) start_paused: Option<Vec<TokenTree>>,
    /// The body stays on the thread that calls.
    pub(crate) main_thread: bool,
    /// How long a program may take to end, in milliseconds, and where that stands.
    pub(crate) grace: Option<(u64, Span)>,
    /// Whether SIGQUIT prints a dump, if that is said.
    pub(crate) dump: Option<bool>,
    /// Whether the program is warned, if that is said.
    pub(crate) warnings: Option<bool>,
    /// The test is simulated.
    pub(crate) sim: bool,
    /// Under how many seeds: an expression, as written.
    pub(crate) seeds: Option<Vec<TokenTree>>,
    /// How much virtual time each of them may take, in milliseconds.
    pub(crate) time_limit: Option<u64>,
    /// How many steps may take no virtual time: an expression, as written.
    pub(crate) step_limit: Option<Vec<TokenTree>>,
    /// Path of the `mini` crate; `None` means `::mini`.
    pub(crate) path: Option<Vec<TokenTree>>,
}

impl Args {
    /// Reads the arguments of `entry`.
    pub(crate) fn parse(entry: Entry, tokens: TokenStream) -> Result<Args, Vec<Error>> {
        let mut errors = Vec::new();
        let mut arguments: Vec<Argument> = Vec::new();
        let pieces = split_at_commas(tokens);
        let known = match entry {
            Entry::Main => KNOWN_OF_MAIN,
            Entry::Test if pieces.iter().any(|piece| is_ident(&piece[0], "sim")) => KNOWN_WITH_SIM,
            Entry::Test => KNOWN_OF_TEST,
        };
        for piece in pieces {
            match Argument::parse(piece, known) {
                Ok(argument) if arguments.iter().any(|earlier| earlier.key == argument.key) => {
                    errors.push(Error::at(argument.name.span(), format!("`{}` is given twice", argument.name)));
                }
                Ok(argument) => arguments.push(argument),
                Err(error) => errors.push(error),
            }
        }
        let mut args = Args {
            flavor: entry.default_flavor(),
            worker_threads: None,
            start_paused: None,
            main_thread: entry == Entry::Test,
            grace: None,
            dump: None,
            warnings: None,
            sim: false,
            seeds: None,
            time_limit: None,
            step_limit: None,
            path: None,
        };
        errors.extend(arguments.iter().filter_map(|argument| args.set(argument).err()));
        if errors.is_empty() {
            let is_sim = args.sim;
            errors.extend(arguments.iter().filter_map(|argument| argument.misfit(entry, args.flavor, is_sim)));
        }
        if errors.is_empty() { Ok(args) } else { Err(errors) }
    }

    /// What is wrong with the arguments for a function of that name.
    pub(crate) fn faults(&self, name: &Ident) -> Option<Error> {
        let (_, span) = self.grace.filter(|_| name.to_string() != "main")?;
        Some(Error::at(span, "`grace` works on the function `main` only, which ends the program"))
    }

    fn set(&mut self, argument: &Argument) -> Result<(), Error> {
        match argument.key {
            Key::Flavor => self.flavor = argument.flavor()?,
            Key::WorkerThreads => self.worker_threads = Some(argument.count()?),
            Key::StartPaused => self.start_paused = Some(vec![argument.bool()?]),
            Key::MainThread => self.main_thread = is_ident(&argument.bool()?, "true"),
            Key::Grace => self.grace = Some((argument.time()?, argument.name.span())),
            Key::Dump => self.dump = Some(is_ident(&argument.bool()?, "true")),
            Key::Warnings => self.warnings = Some(is_ident(&argument.bool()?, "true")),
            Key::Sim => self.sim = true,
            Key::Seeds => self.seeds = Some(argument.count()?),
            Key::TimeLimit => self.time_limit = Some(argument.time()?),
            Key::StepLimit => self.step_limit = Some(argument.count()?),
            Key::Crate => self.path = Some(argument.path()?),
        }
        Ok(())
    }
}

impl Entry {
    /// A program is a server until it says otherwise; a test wants as little as possible to happen at once.
    fn default_flavor(self) -> Flavor {
        match self {
            Entry::Main => Flavor::MultiThread,
            Entry::Test => Flavor::CurrentThread,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    Flavor,
    WorkerThreads,
    StartPaused,
    MainThread,
    Grace,
    Dump,
    Warnings,
    Sim,
    Seeds,
    TimeLimit,
    StepLimit,
    Crate,
}

/// One `name = value`.
struct Argument {
    key: Key,
    name: Ident,
    /// Never empty.
    value: Vec<TokenTree>,
}

impl Argument {
    /// `known` are the names to tell where something else stands.
    fn parse(piece: Vec<TokenTree>, known: &str) -> Result<Argument, Error> {
        let Some(TokenTree::Ident(name)) = piece.first() else {
            return Err(Error::over(&piece, format!("expected `name = value`; the names are {known}")));
        };
        let key = match name.to_string().as_str() {
            "flavor" => Key::Flavor,
            "worker_threads" => Key::WorkerThreads,
            "start_paused" => Key::StartPaused,
            "main_thread" => Key::MainThread,
            "grace" => Key::Grace,
            "dump" => Key::Dump,
            "warnings" => Key::Warnings,
            "sim" => Key::Sim,
            "seeds" => Key::Seeds,
            "time_limit" => Key::TimeLimit,
            "step_limit" => Key::StepLimit,
            "crate" => Key::Crate,
            other => {
                return Err(Error::at(name.span(), format!("unknown argument `{other}`; the arguments are {known}")));
            }
        };
        match &piece[1..] {
            [] if key == Key::Sim => Ok(Argument { key, name: name.clone(), value: Vec::new() }),
            _ if key == Key::Sim => Err(Error::over(&piece, "`sim` takes no value".to_owned())),
            [equals, value @ ..] if is_punct(equals, '=') && !value.is_empty() => {
                if let Some(next) = next_name(value) {
                    return Err(Error::at(next.span(), format!("expected `,` before `{next}`")));
                }
                Ok(Argument { key, name: name.clone(), value: value.to_vec() })
            }
            _ => Err(Error::over(&piece, format!("`{name}` needs a value: `{name} = ...`"))),
        }
    }

    fn flavor(&self) -> Result<Flavor, Error> {
        match self.literal().and_then(|literal| string_content(&literal.to_string())).as_deref() {
            Some("current_thread") => Ok(Flavor::CurrentThread),
            Some("multi_thread") => Ok(Flavor::MultiThread),
            Some(other) => Err(self.wrong(format!("unknown flavor \"{other}\"; the flavors are {FLAVORS}"))),
            None => Err(self.wrong(format!("`flavor` takes a string; the flavors are {FLAVORS}"))),
        }
    }

    /// The value as a number from 1 on.
    fn count(&self) -> Result<Vec<TokenTree>, Error> {
        let is_integer = match self.single() {
            Some(TokenTree::Literal(literal)) => {
                let text = literal.to_string();
                if is_zero(&text) {
                    return Err(self.wrong(format!("`{}` must be at least 1", self.name)));
                }
                is_integer(&text)
            }
            Some(token) => !is_bool(&token),
            None => true,
        };
        if is_integer { Ok(enclose(&self.value)) } else { Err(self.wrong(format!("`{}` takes an integer", self.name))) }
    }

    fn bool(&self) -> Result<TokenTree, Error> {
        match self.single() {
            Some(token) if is_bool(&token) => Ok(token),
            _ => Err(self.wrong(format!("`{}` takes `true` or `false`", self.name))),
        }
    }

    /// The value in milliseconds.
    fn time(&self) -> Result<u64, Error> {
        let content = self.literal().and_then(|literal| string_content(&literal.to_string()));
        content.and_then(|text| milliseconds(&text)).ok_or_else(|| {
            let form = "a time in a string: \"10s\", or in `ms`, `m` or `h` instead of `s`";
            self.wrong(format!("`{}` takes {form}", self.name))
        })
    }

    /// The value as a path that `::runtime` can be put behind. In a string, each token gets the span of the string.
    fn path(&self) -> Result<Vec<TokenTree>, Error> {
        let path = match self.literal() {
            Some(literal) => {
                let content = string_content(&literal.to_string()).and_then(|text| text.parse().ok());
                let mut tokens = content.map(flatten).unwrap_or_default();
                tokens.iter_mut().for_each(|token| token.set_span(literal.span()));
                tokens
            }
            None => flatten(self.value.iter().cloned().collect()),
        };
        if is_path(&path) {
            Ok(path)
        } else {
            Err(self.wrong("`crate` takes a path, such as `my_crate::mini` or \"my_crate::mini\"".to_owned()))
        }
    }

    /// The error, if only the other attribute or flavor knows this argument.
    fn misfit(&self, entry: Entry, flavor: Flavor, is_sim: bool) -> Option<Error> {
        let is_of_sim = matches!(self.key, Key::Sim | Key::Seeds | Key::TimeLimit | Key::StepLimit);
        if is_sim && !is_of_sim && self.key != Key::Crate {
            return Some(Error::at(self.name.span(), format!("`{}` cannot be combined with `sim`", self.name)));
        }
        let wanted = match (self.key, entry, flavor) {
            (_, Entry::Main, _) if is_of_sim => Entry::Test.to_string(),
            _ if is_of_sim && !is_sim => "`sim`".to_owned(),
            (Key::MainThread | Key::Grace | Key::Dump, Entry::Test, _) => Entry::Main.to_string(),
            (Key::WorkerThreads | Key::MainThread, _, Flavor::CurrentThread) => {
                "`flavor = \"multi_thread\"`".to_owned()
            }
            (Key::StartPaused, _, Flavor::MultiThread) => "`flavor = \"current_thread\"`".to_owned(),
            _ => return None,
        };
        Some(Error::at(self.name.span(), format!("`{}` works only with {wanted}", self.name)))
    }

    /// The value if it is one token.
    fn single(&self) -> Option<TokenTree> {
        match flatten(self.value.iter().cloned().collect()).as_slice() {
            [token] => Some(token.clone()),
            _ => None,
        }
    }

    fn literal(&self) -> Option<Literal> {
        match self.single() {
            Some(TokenTree::Literal(literal)) => Some(literal),
            _ => None,
        }
    }

    fn wrong(&self, message: String) -> Error {
        Error::over(&self.value, message)
    }
}

/// The pieces between commas. The last comma may be followed by nothing.
fn split_at_commas(tokens: TokenStream) -> Vec<Vec<TokenTree>> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut pieces: Vec<_> = tokens.split_inclusive(|token| is_punct(token, ',')).map(<[_]>::to_vec).collect();
    for piece in &mut pieces {
        // A comma with nothing before it stays, for the error to point at.
        if piece.len() > 1 && piece.last().is_some_and(|token| is_punct(token, ',')) {
            piece.pop();
        }
    }
    pieces
}

/// The name in `1 name = 2`, where a comma is missing; an expression has no `=` of its own but `==`.
fn next_name(value: &[TokenTree]) -> Option<&TokenTree> {
    let assigns = |tokens: &&[TokenTree]| {
        matches!(tokens[0], TokenTree::Ident(_)) && is_punct(&tokens[1], '=') && !is_punct(&tokens[2], '=')
    };
    value[1..].windows(3).find(assigns).map(|tokens| &tokens[0])
}

/// `tokens` with the groups that `macro_rules!` variables leave around their values opened.
fn flatten(tokens: TokenStream) -> Vec<TokenTree> {
    let open = |token: TokenTree| match transparent(&token) {
        Some(inner) => flatten(inner),
        None => vec![token],
    };
    tokens.into_iter().flat_map(open).collect()
}

/// `expression` with parentheses where `macro_rules!` variables left groups, as in `$n * 2`.
///
/// rustc ignores a group without delimiters that a macro like this one returns, and `1 + 1` times 2 would be 3. A path
/// or a lone token needs no parentheses, and could not be a type with them.
fn enclose(expression: &[TokenTree]) -> Vec<TokenTree> {
    if let [_] = expression {
        return expression.to_vec();
    }
    let has_operator = |tokens: &TokenStream| {
        tokens.clone().into_iter().any(|token| matches!(token, TokenTree::Punct(_)) && !is_punct(&token, ':'))
    };
    let enclosed = expression.iter().map(|token| match transparent(token) {
        Some(inner) if has_operator(&inner) => Group::new(Delimiter::Parenthesis, inner).into(),
        _ => token.clone(),
    });
    enclosed.collect()
}

fn is_bool(token: &TokenTree) -> bool {
    is_ident(token, "true") || is_ident(token, "false")
}

/// Whether `tokens` are `a::b::c`, with or without `::` in front.
fn is_path(tokens: &[TokenTree]) -> bool {
    let is_separator = |pair: &[TokenTree]| pair.iter().all(|token| is_punct(token, ':'));
    let names = match tokens {
        [a, b, rest @ ..] if is_punct(a, ':') && is_punct(b, ':') => rest,
        _ => tokens,
    };
    names.len() % 3 == 1
        && names.chunks(3).all(|chunk| matches!(chunk[0], TokenTree::Ident(_)) && is_separator(&chunk[1..]))
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Entry::Main => "`#[mini::main]`",
            Entry::Test => "`#[mini::test]`",
        })
    }
}
