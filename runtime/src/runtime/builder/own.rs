//! Settings for mini's own use.

use super::Builder;

impl Builder {
    /// The runtime is a part of mini.
    #[cfg(feature = "signal")]
    pub(crate) fn internal(&mut self) -> &mut Self {
        #[cfg(feature = "insight")]
        {
            self.settings.is_internal = true;
        }
        self
    }

    /// For the attribute of tests: the main thread only waits for them, if with a time limit.
    #[doc(hidden)]
    pub fn in_test_harness(&mut self) -> &mut Self {
        self.settings.in_test_harness = true;
        self
    }
}
