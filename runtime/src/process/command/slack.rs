//! Exact timers, which a child must not inherit from the thread that starts it.

use mini_kernel::scheduler::current;

/// While it lives, this thread's timers have the usual slack; holds the slack before.
///
/// A worker's timers are exact ([`Builder::timer_slack`](crate::runtime::Builder::timer_slack)). A child would inherit
/// that (prctl(2), `PR_SET_TIMERSLACK`), and wake the processor more often than it means to.
pub(super) struct Slack(Option<u64>);

impl Slack {
    pub(super) fn usual() -> Slack {
        /// The slack of the first process, which all others inherit.
        const NANOS: u64 = 50_000;
        // Also where the worker waits in `block_in_place` below.
        let exact =
            current::with_shared(|shared| shared.config.timer_slack.filter(|_| current::is_working_for(shared)));
        Slack(exact.flatten().and_then(|_| mini_net::set_timer_slack(NANOS)))
    }
}

impl Drop for Slack {
    fn drop(&mut self) {
        if let Some(before) = self.0 {
            mini_net::set_timer_slack(before);
        }
    }
}
