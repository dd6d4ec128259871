//! A tokio runtime that runs beside mini, and that every polling thread has entered.

use mini_tests::{LIMIT, on_each_flavour, within};

/// A tokio runtime with one thread.
pub(crate) fn tokio() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// Lets the threads that `builder` starts enter `tokio`.
pub(crate) fn enter_on_start<R>(builder: &mut mini::runtime::Builder<R>, tokio: &tokio::runtime::Runtime) {
    let handle = tokio.handle().clone();
    builder.on_thread_start(move || std::mem::forget(handle.enter()));
}

/// Runs `body` in a runtime of each flavour.
pub(crate) fn on_each_flavour_in_tokio(body: impl AsyncFn() + Send + Sync + 'static) {
    on_each_flavour(move |mut builder| {
        let tokio = tokio();
        let _inside = tokio.enter();
        enter_on_start(&mut builder, &tokio);
        builder.build().unwrap().block_on(body());
    });
}

/// Runs `body` in `mini::block_on`, within the limit of a test.
pub(crate) fn block_on_in_tokio(body: impl AsyncFnOnce() + Send + 'static) {
    within(LIMIT, || {
        let tokio = tokio();
        let _inside = tokio.enter();
        mini::block_on(body());
    });
}
