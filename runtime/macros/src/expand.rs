//! The function an attribute leaves behind: promises that rustc checks the user's body as the `async fn` it was written
//! as.
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

use proc_macro::{Delimiter, Group, Span, TokenStream, TokenTree};

use crate::args::{Args, Entry, Flavor};
use crate::error::Error;
use crate::parse::{Function, flatten, is_ident};

/// Expands one of the attributes.
pub(crate) fn expand(entry: Entry, args: TokenStream, item: TokenStream) -> TokenStream {
    let tokens = flatten(item.clone());
    let mut errors = Vec::new();
    let args = Args::parse(entry, args).map_err(|wrong| errors.extend(wrong));
    let function = Function::parse(entry, &tokens).map_err(|wrong| errors.push(wrong));
    if let (Ok(Args { grace: Some((_, span)), .. }), Ok(function)) = (&args, &function)
        && !function.is_main()
    {
        errors.push(Error::at(*span, "`grace` works on the function `main` only, which ends the program"));
    }
    match (args, function) {
        (Ok(args), Ok(function)) if errors.is_empty() => wrap(entry, args, function),
        _ => errors.into_iter().map(Error::into_tokens).chain([recover(&tokens, item)]).collect(),
    }
}

/// `function` as a sync function that runs it.
fn wrap(entry: Entry, args: Args, function: Function) -> TokenStream {
    let returns = !function.output.is_empty() || args.grace.is_some(); // the end in time has a code, too
    let has_code = entry == Entry::Main && returns && function.is_main();
    let is_simulated = args.sim;
    let call = if is_simulated { simulate(args, &function) } else { run(entry, args, &function, has_code) };

    let Function { head, mut asyncness, fn_token, name, params, output, body } = function;
    // At the place where the user wrote it, but marked as the macro's own, so that lints about needless `async` leave
    // it alone.
    asyncness.set_span(asyncness.span().resolved_at(Span::call_site()));
    let signature = [fn_token.into(), name.into(), TokenTree::from(params)];
    let mut inner = TokenStream::from(TokenTree::from(asyncness));
    inner.extend(signature.clone());
    inner.extend(output.clone());
    inner.extend([TokenTree::from(body.clone())]);
    inner.extend(call);
    // With the body's span, rustc's messages about the whole function do not point at the attribute.
    let mut block = Group::new(Delimiter::Brace, inner);
    block.set_span(body.span());

    let mut outer = TokenStream::new();
    if entry == Entry::Test {
        outer.extend(quote("#[::core::prelude::v1::test]", &[]));
    }
    outer.extend(head);
    outer.extend(signature);
    if has_code {
        outer.extend(quote("-> ::std::process::ExitCode", &[]));
    } else if !is_simulated {
        outer.extend(output);
    }
    outer.extend([TokenTree::from(block)]);
    outer
}

/// The call of a test under many seeds, which gives nothing back:
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
fn simulate(args: Args, function: &Function) -> TokenStream {
    let time = args.time_limit.map_or_else(String::new, |milliseconds| {
        format!(".time_limit(::core::time::Duration::from_millis({milliseconds}))")
    });
    let steps = if args.step_limit.is_some() { ".step_limit(STEPS)" } else { "" };
    let name = function.name.to_string();
    quote(
        &format!("PATH::sim::Seeds::new(::core::module_path!(), {name:?}, SEEDS){time}{steps}.run(NAME)"),
        &[
            ("PATH", args.path.unwrap_or_else(|| quote("::mini", &[]))),
            ("NAME", TokenTree::from(function.name.clone()).into()),
            ("SEEDS", args.seeds.unwrap_or_else(|| quote("100", &[]))),
            ("STEPS", args.step_limit.unwrap_or_default()),
        ],
    )
}

/// Builds the runtime and runs `name()`: a task if it may be one, or with `output_here` on the calling thread. The
/// output becomes an exit code if `has_code`.
fn run(entry: Entry, args: Args, function: &Function, has_code: bool) -> TokenStream {
    let is_here = args.flavor == Flavor::CurrentThread || args.main_thread;
    let is_program = entry == Entry::Main && function.is_main();
    let mut builder = String::from(match args.flavor {
        Flavor::CurrentThread => "PATH::runtime::Builder::new_current_thread()",
        Flavor::MultiThread => "PATH::runtime::Builder::new_multi_thread()",
    });
    if args.worker_threads.is_some() {
        builder += ".worker_threads(COUNT)";
    }
    if let Some(is_paused) = args.start_paused {
        builder += &format!(".start_paused({is_paused})");
    }
    if args.dump.unwrap_or(is_program) {
        builder += ".dump_on_quit(true)";
    }
    builder += &match args.warnings {
        Some(warns) => format!(".warnings({warns})"),
        None => ".warnings(::core::cfg!(debug_assertions))".to_owned(), // as the user's crate is built
    };
    if is_program {
        builder += ".heed_mini_trace(true)";
    }
    if entry == Entry::Test {
        builder += ".in_test_harness()";
    }
    // By its path: on a `&mut Builder` the method of a trait of the program's for all types would come first.
    let runtime = format!(
        "<PATH::runtime::Builder>::build({builder}).unwrap_or_else(
             |mini_error| ::core::panic!(\"{entry} could not start the runtime: {{mini_error}}\"))"
    );
    let body = match has_code {
        false => "(&PATH::runtime::main::Body::new(NAME()))",
        true => "(&(&&&PATH::runtime::main::of_main(NAME())).mini_exit())",
    };
    let traits = match (has_code, is_here, args.grace) {
        (false, true, _) => "",
        (false, false, _) => "use PATH::runtime::main::Output as _;",
        (true, _, None) => "use PATH::runtime::main::{Output as _, OfError as _, OfText as _, OfAny as _};",
        (true, _, Some(_)) => "use PATH::runtime::main::{InGrace as _, OfError as _, OfText as _, OfAny as _};",
    };
    let (method, grace) = match args.grace {
        None => (if is_here { "output_here" } else { "mini_output" }, String::new()),
        Some((milliseconds, _)) => (
            if is_here { "in_grace_here" } else { "in_grace" },
            format!(", PATH::runtime::main::grace::<()>({milliseconds})"),
        ),
    };
    // In a block of its own, where the body does not see the import.
    quote(
        &format!("{{ {traits} {body}.{method}({runtime}{grace}) }}"),
        &[
            ("PATH", args.path.unwrap_or_else(|| quote("::mini", &[]))),
            ("NAME", TokenTree::from(function.name.clone()).into()),
            ("COUNT", args.worker_threads.unwrap_or_default()),
        ],
    )
}

/// What stands for the item after a mistake. A program's `main` must not be async, generic or take arguments: an empty
/// one stands in for it, and it is checked out of sight. Anything else stays as it is.
fn recover(tokens: &[TokenTree], item: TokenStream) -> TokenStream {
    if tokens.windows(2).any(|pair| is_ident(&pair[0], "fn") && is_ident(&pair[1], "main")) {
        quote("fn main() {} const _: () = { ITEM };", &[("ITEM", item)])
    } else {
        item
    }
}

/// Tokens of the macro's own, at the attribute, with the tokens of `parts` where their names stand.
fn quote(code: &str, parts: &[(&str, TokenStream)]) -> TokenStream {
    fn fill(code: TokenStream, parts: &[(&str, TokenStream)]) -> TokenStream {
        let fill_in = |token: TokenTree| match token {
            TokenTree::Group(group) => {
                TokenTree::from(Group::new(group.delimiter(), fill(group.stream(), parts))).into()
            }
            token => match parts.iter().find(|(name, _)| is_ident(&token, name)) {
                Some((_, part)) => part.clone(),
                None => token.into(),
            },
        };
        code.into_iter().map(fill_in).collect()
    }
    fill(code.parse().expect("the macro's own code is made of whole tokens"), parts)
}
