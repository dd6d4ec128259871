//! The arguments of an attribute, `name = value` with commas between. Each is checked alone; only if all are right
//! alone are they checked together, so that a mistyped `flavor` does not make `start_paused` look wrong too.
//!
//! Called by `expand`.
//!
//! Rejected:
//! - Checking the type of `worker_threads`, `seeds` or `step_limit`, or the form of a path: they go to the builder as
//!   they are, and rustc says better what is wrong with them.

use std::fmt;

use proc_macro::{Delimiter, Group, Ident, Literal, Span, TokenStream, TokenTree};

use crate::error::Error;
use crate::literal::{milliseconds, string_content};
use crate::parse::{flatten, is_ident, is_punct, transparent};

const KNOWN_OF_MAIN: &str = "`flavor`, `worker_threads`, `start_paused`, `main_thread`, `grace`, `dump`, `warnings` \
     and `crate`";
const KNOWN_OF_TEST: &str = "`flavor`, `worker_threads`, `start_paused`, `main_thread`, `grace`, `dump`, `warnings`, \
     `sim`, `seeds`, `time_limit`, `step_limit` and `crate`";
const FLAVORS: &str = "\"current_thread\" and \"multi_thread\"";

/// The attribute that is expanded; displayed as the user writes it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    Main,
    Test,
}

/// The runtime to build.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Flavor {
    #[default]
    CurrentThread,
    MultiThread,
}

/// The arguments, checked.
#[derive(Default)]
pub(crate) struct Args {
    pub(crate) flavor: Flavor,
    /// The expression, as written.
    pub(crate) worker_threads: Option<TokenStream>,
    pub(crate) start_paused: Option<bool>,
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
    pub(crate) seeds: Option<TokenStream>,
    /// How much virtual time each of them may take, in milliseconds.
    pub(crate) time_limit: Option<u64>,
    /// How many steps may take no virtual time: an expression, as written.
    pub(crate) step_limit: Option<TokenStream>,
    /// Path of the `mini` crate; `None` means `::mini`.
    pub(crate) path: Option<TokenStream>,
}

impl Args {
    /// Reads the arguments of `entry`.
    pub(crate) fn parse(entry: Entry, tokens: TokenStream) -> Result<Args, Vec<Error>> {
        let mut args = Args { main_thread: entry == Entry::Test, ..Args::default() };
        if entry == Entry::Main {
            args.flavor = Flavor::MultiThread; // a test wants as little as possible to happen at once
        }
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut pieces: Vec<_> = tokens.split(|token| is_punct(token, ',')).collect();
        pieces.pop_if(|last| last.is_empty()); // behind the last comma, or all there is
        let mut arguments: Vec<Argument<'_>> = Vec::new();
        let mut errors = Vec::new();
        for piece in pieces {
            let read = Argument::parse(piece, entry).and_then(|argument| {
                if arguments.iter().any(|earlier| earlier.key == argument.key) {
                    return Err(argument.misplaced("is given twice"));
                }
                args.set(&argument, entry)?;
                Ok(argument)
            });
            match read {
                Ok(argument) => arguments.push(argument),
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() {
            errors.extend(arguments.iter().filter_map(|argument| argument.misfit(entry, &args)));
        }
        if errors.is_empty() { Ok(args) } else { Err(errors) }
    }

    fn set(&mut self, argument: &Argument<'_>, entry: Entry) -> Result<(), Error> {
        match argument.key.as_str() {
            "flavor" => self.flavor = argument.flavor()?,
            "worker_threads" => self.worker_threads = Some(argument.expression()),
            "start_paused" => self.start_paused = Some(argument.bool()?),
            "main_thread" => self.main_thread = argument.bool()?,
            "grace" => self.grace = Some((argument.time()?, argument.name.span())),
            "dump" => self.dump = Some(argument.bool()?),
            "warnings" => self.warnings = Some(argument.bool()?),
            "sim" => self.sim = true,
            "seeds" => self.seeds = Some(argument.expression()),
            "time_limit" => self.time_limit = Some(argument.time()?),
            "step_limit" => self.step_limit = Some(argument.expression()),
            "crate" => self.path = Some(argument.path()),
            _ => return Err(unknown(argument.name, entry)),
        }
        Ok(())
    }
}

impl Entry {
    /// The names of its arguments.
    fn known(self) -> &'static str {
        match self {
            Entry::Main => KNOWN_OF_MAIN,
            Entry::Test => KNOWN_OF_TEST,
        }
    }
}

fn unknown(name: &Ident, entry: Entry) -> Error {
    Error::at(name.span(), format!("unknown argument `{name}`; the arguments are {}", entry.known()))
}

/// One `name = value`.
struct Argument<'a> {
    name: &'a Ident,
    /// The name as text.
    key: String,
    /// Never empty, except that of `sim`.
    value: &'a [TokenTree],
}

impl<'a> Argument<'a> {
    fn parse(piece: &'a [TokenTree], entry: Entry) -> Result<Argument<'a>, Error> {
        let Some(TokenTree::Ident(name)) = piece.first() else {
            return Err(Error::over(piece, format!("expected `name = value`; the names are {}", entry.known())));
        };
        let key = name.to_string();
        match &piece[1..] {
            [] if key == "sim" => Ok(Argument { name, key, value: &[] }),
            _ if key == "sim" => Err(Error::over(piece, "`sim` takes no value")),
            [equals, value @ ..] if is_punct(equals, '=') && !value.is_empty() => Ok(Argument { name, key, value }),
            _ if !entry.known().contains(&format!("`{name}`")) => Err(unknown(name, entry)),
            _ => Err(Error::over(piece, format!("`{name}` needs a value: `{name} = ...`"))),
        }
    }

    fn flavor(&self) -> Result<Flavor, Error> {
        match self.string().as_deref() {
            Some("current_thread") => Ok(Flavor::CurrentThread),
            Some("multi_thread") => Ok(Flavor::MultiThread),
            Some(other) => Err(self.wrong(format!("unknown flavor \"{other}\"; the flavors are {FLAVORS}"))),
            None => Err(self.wrong(format!("`flavor` takes a string; the flavors are {FLAVORS}"))),
        }
    }

    /// The value, with parentheses where `macro_rules!` variables left groups, as in `$n * 2`: rustc ignores a group
    /// without delimiters that a macro like this one returns, and `1 + 1` times 2 would be 3.
    fn expression(&self) -> TokenStream {
        if let [token] = self.value {
            return token.clone().into();
        }
        let enclosed = self.value.iter().map(|token| match transparent(token) {
            Some(inner) => Group::new(Delimiter::Parenthesis, inner).into(),
            None => token.clone(),
        });
        enclosed.collect()
    }

    fn bool(&self) -> Result<bool, Error> {
        match self.single() {
            Some(token) if is_ident(&token, "true") => Ok(true),
            Some(token) if is_ident(&token, "false") => Ok(false),
            _ => Err(self.wrong(format!("`{}` takes `true` or `false`", self.name))),
        }
    }

    /// The value in milliseconds.
    fn time(&self) -> Result<u64, Error> {
        self.string().and_then(|text| milliseconds(&text)).ok_or_else(|| {
            let form = "a time in a string: \"10s\", or in `ms`, `m` or `h` instead of `s`";
            self.wrong(format!("`{}` takes {form}", self.name))
        })
    }

    /// The value as a path that `::runtime` can be put behind. In a string, each token gets the span of the string.
    fn path(&self) -> TokenStream {
        let Some(literal) = self.literal() else { return flatten(self.value.iter().cloned()).into_iter().collect() };
        let path = self.string().and_then(|text| text.parse::<TokenStream>().ok());
        let at_literal = |mut token: TokenTree| {
            token.set_span(literal.span());
            token
        };
        path.unwrap_or_else(|| TokenTree::from(literal.clone()).into()).into_iter().map(at_literal).collect()
    }

    /// The error, if only the other attribute or flavor knows this argument.
    fn misfit(&self, entry: Entry, args: &Args) -> Option<Error> {
        let key = self.key.as_str();
        let is_of_sim = ["sim", "seeds", "time_limit", "step_limit"].contains(&key);
        let wanted = match (key, entry, args.flavor) {
            _ if args.sim && !is_of_sim && key != "crate" => "without `sim`".to_owned(),
            (_, Entry::Main, _) if is_of_sim => format!("with {}", Entry::Test),
            _ if is_of_sim && !args.sim => "with `sim`".to_owned(),
            ("main_thread" | "grace" | "dump", Entry::Test, _) => format!("with {}", Entry::Main),
            ("worker_threads" | "main_thread", _, Flavor::CurrentThread) => {
                "with `flavor = \"multi_thread\"`".to_owned()
            }
            ("start_paused", _, Flavor::MultiThread) => "with `flavor = \"current_thread\"`".to_owned(),
            _ => return None,
        };
        Some(self.misplaced(&format!("works only {wanted}")))
    }

    /// The value if it is one token.
    fn single(&self) -> Option<TokenTree> {
        <[TokenTree; 1]>::try_from(flatten(self.value.iter().cloned())).ok().map(|[token]| token)
    }

    fn literal(&self) -> Option<Literal> {
        match self.single() {
            Some(TokenTree::Literal(literal)) => Some(literal),
            _ => None,
        }
    }

    fn string(&self) -> Option<String> {
        string_content(&self.literal()?.to_string())
    }

    /// An error at the name.
    fn misplaced(&self, what: &str) -> Error {
        Error::at(self.name.span(), format!("`{}` {what}", self.name))
    }

    /// An error at the value.
    fn wrong(&self, message: String) -> Error {
        Error::over(self.value, message)
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Entry::Main => "`#[mini::main]`",
            Entry::Test => "`#[mini::test]`",
        })
    }
}
