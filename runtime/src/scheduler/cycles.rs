//! The processor's cycle counter, where it counts at a constant rate.
//!
//! Read by the worker's [`Meter`](super::meter::Meter) after each run. Reading it takes 8 to 12 ns on a virtual
//! machine; the system's clock, which is the counter and a conversion behind a call, takes 30.
//!
//! Rejected: the kernel's coarse clock (5 ns; as old as the last tick of the processor, 1 to 4 ms).

#![allow(unsafe_code)]

/// The counter. Meaningful only if [`are_steady`].
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
pub(crate) fn read() -> u64 {
    // SAFETY: every x86_64 processor has the instruction, which reads a register and changes nothing.
    // Test: meter.rs `time_goes_on_as_the_clock_does`.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Whether the counter counts at a constant rate, in sleep states too (AMD64 Architecture Programmer's Manual, volume
/// 3, CPUID Fn8000_0007_EDX bit 8).
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(crate) fn are_steady() -> bool {
    use std::arch::x86_64::__cpuid;
    const STEADY: u32 = 1 << 8;
    __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & STEADY != 0
}

/// The counter-timer virtual count, which always counts at a constant rate (Arm Architecture Reference Manual,
/// CNTVCT_EL0).
#[cfg(all(target_arch = "aarch64", not(miri)))]
#[inline]
pub(crate) fn read() -> u64 {
    let count: u64;
    // SAFETY: the operating systems that mini runs on let programs read the register, as their own clocks do so.
    // Test: meter.rs `time_goes_on_as_the_clock_does`.
    unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack, preserves_flags)) };
    count
}

/// Always.
#[cfg(all(target_arch = "aarch64", not(miri)))]
pub(crate) fn are_steady() -> bool {
    true
}

/// There is none.
#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(crate) fn read() -> u64 {
    0
}

/// There is none.
#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(crate) fn are_steady() -> bool {
    false
}
