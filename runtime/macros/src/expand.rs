//! The function an attribute leaves behind: promises that rustc checks the user's body as the `async fn` it was written
//! as, and that after a mistake rustc reports only this one and none that follows from it.
//!
//! Called by the two entry points in `lib.rs`. The user's function goes, unchanged but for its attributes and
//! visibility, into a sync function of the same name:
//!
//! ```text
//! fn main() -> R {
//!     async fn main() -> R { body }
//!     { use ::mini::runtime::main::Output as _; (&::mini::runtime::main::Body::new(main())).mini_output(runtime) }
//! }
//! ```
//!
//! where `runtime` is `::mini::runtime::Builder::new_multi_thread().dump_on_quit(true) ...
//! .build().unwrap_or_else(..)`. `mini_output` makes the body a task where its type allows that
//! (`runtime/src/runtime/main.rs`); `output_here` leaves it on the thread. What a `main` returns becomes an exit code:
//!
//! ```text
//! fn main() -> ExitCode {
//!     async fn main() -> R { body }
//!     { use ::mini::runtime::main::{...}; (&(&&&::mini::runtime::main::of_main(main())).mini_exit()).mini_output(..) }
//! }
//! ```
//!
//! The methods of traits, and what the code here binds, have names that no program has: a trait of the program's for
//! all types, or a constant, is in scope here too.
//!
//! With a `grace` the last call is `.in_grace(runtime, ::mini::runtime::main::grace::<()>(10000))`, and a `main` that
//! returns nothing has an exit code too.
//!
//! Both functions have the same name, so the macro hides no other name from the body.
//!
//! Rejected:
//! - `block_on(async { body })`: the types of `?` and `return` would have to be inferred, errors would mention an async
//!   block that the user did not write, and `-> impl Trait` would be impossible to pin. The price: in an `impl`, the
//!   body can't say `Self`.
//! - `let runtime = ...`: a pattern would clash with a user's constant of that name; a chain of calls binds nothing.

use proc_macro::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};

use crate::args::{Args, Entry, Flavor};
use crate::error::Error;
use crate::parse::Function;

/// Expands one of the attributes.
pub(crate) fn expand(entry: Entry, args: TokenStream, item: TokenStream) -> TokenStream {
    let (args, mut errors) = match Args::parse(entry, args) {
        Ok(args) => (Some(args), Vec::new()),
        Err(errors) => (None, errors),
    };
    let function = match Function::parse(entry, item.clone()) {
        Ok(function) => function,
        Err(error) => {
            errors.push(error);
            return report(errors, item);
        }
    };
    errors.extend(function.faults(entry));
    errors.extend(args.as_ref().and_then(|args| args.faults(&function.name)));
    match args {
        Some(args) if errors.is_empty() => {
            if args.sim {
                return wrap_simulated(function, args);
            }
            let ending = Ending::of(entry, &args, &function);
            let call = run(entry, args, ending, &function.name);
            wrap(entry, function, ending, call)
        }
        _ => {
            let rest = recover(entry, function, item);
            report(errors, rest)
        }
    }
}

/// The way in which the body runs and its output is used.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// The body is a task if it may be one; the caller gets the output.
    Output,
    /// The same on the calling thread.
    OutputHere,
    /// A program's `main`, whose output becomes an exit code: a task if it may be one.
    ExitCode,
    /// The same on the calling thread.
    ExitCodeHere,
    /// A test under many seeds, which gives nothing back.
    Seeds,
}

impl Ending {
    fn of(entry: Entry, args: &Args, function: &Function) -> Self {
        let is_here = args.flavor == Flavor::CurrentThread || args.main_thread;
        // Without a return type it is `()`, which goes anywhere.
        let returns = !function.output.is_empty() || args.grace.is_some(); // the end in time has a code, too
        let has_code = entry == Entry::Main && returns && function.name.to_string() == "main";
        match (is_here, has_code) {
            (true, true) => Self::ExitCodeHere,
            (true, false) => Self::OutputHere,
            (false, true) => Self::ExitCode,
            (false, false) => Self::Output,
        }
    }
}

/// `function` under many seeds:
///
/// ```text
/// #[test]
/// fn name() {
///     async fn name() -> R { body }
///     ::mini::sim::Seeds::new(::core::module_path!(), "name", 200).run(name)
/// }
/// ```
///
/// Between `new` and `run` stand the limits that the attribute sets, such as `.step_limit(1000)`.
fn wrap_simulated(function: Function, args: Args) -> TokenStream {
    let mut call = args.path.map_or_else(|| source("::mini"), TokenStream::from_iter);
    let count = args.seeds.map_or_else(|| source("100"), TokenStream::from_iter);
    let mut arguments = source(&format!("::core::module_path!(), {:?},", function.name.to_string()));
    arguments.extend(count);
    call.extend(source("::sim::Seeds::new"));
    call.extend(parenthesized(arguments));
    if let Some(milliseconds) = args.time_limit {
        call.extend(source(&format!(".time_limit(::core::time::Duration::from_millis({milliseconds}))")));
    }
    if let Some(steps) = args.step_limit {
        call.extend(source(".step_limit"));
        call.extend(parenthesized(steps.into_iter().collect()));
    }
    call.extend(source(".run"));
    call.extend(parenthesized(TokenTree::from(function.name.clone()).into()));
    wrap(Entry::Test, function, Ending::Seeds, call)
}

/// `function` as a sync function that ends with `call`.
fn wrap(entry: Entry, function: Function, ending: Ending, call: TokenStream) -> TokenStream {
    let Function { attributes, visibility, asyncness, fn_token, name, params, output, body, .. } = function;
    let mut asyncness = asyncness.unwrap_or_else(|| Ident::new("async", fn_token.span()));
    // At the place where the user wrote it, but marked as the macro's own, so that lints about needless `async` leave
    // it alone.
    asyncness.set_span(asyncness.span().resolved_at(Span::call_site()));
    let signature: [TokenTree; 3] = [fn_token.into(), name.into(), params.into()];

    let mut inner = TokenStream::from(TokenTree::from(asyncness));
    inner.extend(signature.clone());
    inner.extend(output.iter().cloned());
    let span = body.span();
    inner.extend([TokenTree::from(body)]);
    inner.extend(call);
    // With the body's span, rustc's messages about the whole function do not point at the attribute.
    let mut block = Group::new(Delimiter::Brace, inner);
    block.set_span(span);

    let mut outer = TokenStream::new();
    if entry == Entry::Test {
        outer.extend(source("#[::core::prelude::v1::test]"));
    }
    outer.extend(attributes);
    outer.extend(visibility);
    outer.extend(signature);
    match ending {
        Ending::ExitCode | Ending::ExitCodeHere => outer.extend(source("-> ::std::process::ExitCode")),
        Ending::Output | Ending::OutputHere => outer.extend(output),
        Ending::Seeds => {}
    }
    outer.extend([TokenTree::from(block)]);
    outer
}

/// Builds the runtime and runs `name()`.
fn run(entry: Entry, args: Args, ending: Ending, name: &Ident) -> TokenStream {
    let path = args.path.map_or_else(|| source("::mini"), TokenStream::from_iter);
    let in_main = |rest: &str| -> TokenStream {
        path.clone().into_iter().chain(source(&format!("::runtime::main::{rest}"))).collect()
    };
    let mut runtime = path.clone();
    runtime.extend(source(match args.flavor {
        Flavor::CurrentThread => "::runtime::Builder::new_current_thread()",
        Flavor::MultiThread => "::runtime::Builder::new_multi_thread()",
    }));
    for (method, value) in [(".worker_threads", args.worker_threads), (".start_paused", args.start_paused)] {
        if let Some(value) = value {
            runtime.extend(source(method));
            runtime.extend(parenthesized(value.into_iter().collect()));
        }
    }
    let is_program = entry == Entry::Main && name.to_string() == "main";
    if args.dump.unwrap_or(is_program) {
        runtime.extend(source(".dump_on_quit(true)"));
    }
    runtime.extend(source(match args.warnings {
        Some(true) => ".warnings(true)",
        Some(false) => ".warnings(false)",
        None => ".warnings(::core::cfg!(debug_assertions))", // as the user's crate is built
    }));
    if is_program {
        runtime.extend(source(".heed_mini_trace(true)"));
    }
    if entry == Entry::Test {
        runtime.extend(source(".in_test_harness()"));
    }
    // By its path: on a `&mut Builder` the method of a trait of the program's for all types would come first.
    let built = runtime;
    let mut runtime = source("<");
    runtime.extend(path.clone());
    runtime.extend(source("::runtime::Builder>::build"));
    runtime.extend(parenthesized(built));
    runtime.extend(source(&format!(
        ".unwrap_or_else(|mini_error| ::core::panic!(\"{entry} could not start the runtime: {{mini_error}}\"))"
    )));
    let body = match ending {
        Ending::Seeds => unreachable!("has its own call"),
        Ending::Output | Ending::OutputHere => referring("&", in_main("Body::new"), future_of(name)),
        Ending::ExitCode | Ending::ExitCodeHere => {
            let mut body = referring("&&&", in_main("of_main"), future_of(name));
            body.extend(source(".mini_exit()"));
            referring("&", TokenStream::new(), body)
        }
    };
    let traits = match (ending, args.grace) {
        (Ending::OutputHere, _) => None,
        (Ending::Output, _) => Some("Output as _;"),
        (_, None) => Some("{Output as _, OfError as _, OfText as _, OfAny as _};"),
        (_, Some(_)) => Some("{InGrace as _, OfError as _, OfText as _, OfAny as _};"),
    };
    let mut call = TokenStream::new();
    if let Some(traits) = traits {
        call.extend(source("use"));
        call.extend(in_main(traits));
    }
    call.extend(body);
    let is_here = matches!(ending, Ending::ExitCodeHere | Ending::OutputHere);
    let mut arguments = runtime;
    if let Some((milliseconds, _)) = args.grace {
        call.extend(source(if is_here { ".in_grace_here" } else { ".in_grace" }));
        arguments.extend(source(","));
        arguments.extend(in_main(&format!("grace::<()>({milliseconds})")));
    } else {
        call.extend(source(if is_here { ".output_here" } else { ".mini_output" }));
    }
    call.extend(parenthesized(arguments));
    // In a block of its own, where the body does not see the import.
    TokenTree::from(Group::new(Delimiter::Brace, call)).into()
}

/// `(signs function(argument))`.
fn referring(signs: &str, function: TokenStream, argument: TokenStream) -> TokenStream {
    let mut inner = source(signs);
    inner.extend(function);
    inner.extend(parenthesized(argument));
    parenthesized(inner).into_iter().collect()
}

/// What stands for the call after a mistake: it has the right type, even where that is an `impl Trait`, and refers to
/// nothing of `mini`'s. It can't run.
fn placeholder(name: &Ident) -> TokenStream {
    let mut call = source(
        "fn mini_output_of<F: ::core::future::Future>(_: F) -> F::Output { ::core::unreachable!() }
         mini_output_of",
    );
    call.extend(parenthesized(future_of(name)));
    TokenTree::from(Group::new(Delimiter::Brace, call)).into()
}

/// `name()`.
fn future_of(name: &Ident) -> TokenStream {
    let mut call = TokenStream::from(TokenTree::from(name.clone()));
    call.extend(source("()"));
    call
}

/// The function after a mistake, in the form that causes the fewest further errors.
///
/// A plain signature gets the form it would have had. Any other stays as it is, except that a program's `main` must
/// not be async, generic or take arguments: there, an empty one stands in for it, and it is checked out of sight.
fn recover(entry: Entry, mut function: Function, item: TokenStream) -> TokenStream {
    if function.is_plain() {
        if let (Entry::Test, Some(at)) = (entry, function.test_attribute()) {
            function.attributes.drain(at);
        }
        let call = placeholder(&function.name);
        return wrap(entry, function, Ending::OutputHere, call);
    }
    if function.name.to_string() != "main" || function.is_method() {
        return item;
    }
    let mut tokens = source("fn main() {} const _: () =");
    tokens.extend([TokenTree::from(Group::new(Delimiter::Brace, item))]);
    tokens.extend(source(";"));
    tokens
}

/// `errors`, then `rest`.
fn report(errors: Vec<Error>, rest: TokenStream) -> TokenStream {
    let mut tokens: TokenStream = errors.into_iter().map(Error::into_tokens).collect();
    tokens.extend(rest);
    tokens
}

fn parenthesized(tokens: TokenStream) -> [TokenTree; 1] {
    [Group::new(Delimiter::Parenthesis, tokens).into()]
}

/// Tokens of the macro's own, at the attribute.
fn source(code: &str) -> TokenStream {
    code.parse().expect("the macro's own code is made of whole tokens")
}
