//! `pre_exec`, apart from the rest because it is unsafe. A macro, as the docs list the methods of a submodule before
//! the others, and this one is for the few.

/// The method, for the impl of `Command`.
macro_rules! pre_exec_method {
    () => {
        /// Runs `f` in the child, after fork(2) and just before the program is loaded. Its error is that of `spawn`.
        ///
        /// # Examples
        ///
        /// ```
        /// # mini::block_on(async {
        /// let mut command = mini::process::Command::new("true");
        /// // SAFETY: it does nothing but make an error of a number.
        /// unsafe { command.pre_exec(|| Err(std::io::Error::from_raw_os_error(13))) };
        /// let refused = command.spawn().unwrap_err();
        /// assert_eq!(refused.raw_os_error(), Some(13));
        /// # });
        /// ```
        ///
        /// # Safety
        ///
        /// The requirements are those of [`std::os::unix::process::CommandExt::pre_exec`]: the child has one thread and
        /// a copy of everything else, including locks that other threads hold. So `f` may only do what a signal handler
        /// may (signal-safety(7)): no allocation, no lock, and no use of the runtime.
        #[allow(unsafe_code)]
        pub unsafe fn pre_exec<F>(&mut self, f: F) -> &mut Self
        where
            F: FnMut() -> io::Result<()> + Send + Sync + 'static,
        {
            // SAFETY: the caller promises what std asks for, see above.
            // Test: tests/tests/processes/process.rs `std_settings_reach_the_child`.
            unsafe { CommandExt::pre_exec(&mut self.std, f) };
            self
        }
    };
}
pub(super) use pre_exec_method;
