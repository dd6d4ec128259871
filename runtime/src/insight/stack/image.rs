//! The images loaded into this process, as the loader tells of them: programs and libraries, with their tables for
//! unwinding. These are read by `/proc/self/mem`: an image may be unloaded meanwhile.
//!
//! Source: dl_iterate_phdr(3); elf(5).

#![allow(unsafe_code)]

use std::ffi::{CStr, OsStr, c_int, c_void};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::slice;

use libc::{Elf64_Phdr, PF_X, PT_GNU_EH_FRAME, PT_LOAD, dl_phdr_info};

/// More than any program's unwind information, and less than memory.
const MOST: usize = 1 << 28;

/// A program or library. Ranges are in the addresses of the file.
#[derive(Debug)]
pub(super) struct Image {
    /// What an address in memory is more than that in the file.
    bias: usize,
    /// It is read when a stack is told: a library that was replaced since then gives wrong names.
    pub(super) file: PathBuf,
    /// What is loaded of it, and whether that is code.
    loaded: Vec<(Range<usize>, bool)>,
    /// Where the table of unwind information is.
    table: Range<usize>,
}

/// This process's memory.
pub(super) struct Memory(File);

impl Memory {
    pub(super) fn open() -> io::Result<Self> {
        File::open("/proc/self/mem").map(Self)
    }

    pub(super) fn read(&self, range: Range<usize>) -> io::Result<Vec<u8>> {
        if range.len() > MOST {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut bytes = vec![0; range.len()];
        self.0.read_exact_at(&mut bytes, range.start as u64)?;
        Ok(bytes)
    }
}

/// Calls `Image::of` for each image.
extern "C" fn add(info: *mut dl_phdr_info, _: usize, images: *mut c_void) -> c_int {
    // SAFETY: the loader's, until this returns. Test: tests/tests/dumps/stack.rs
    // `a_long_poll_is_told_with_its_native_stack`.
    let info = unsafe { &*info };
    // SAFETY: what `all` has given, which waits. Test: as above.
    let images = unsafe { &mut *images.cast::<Vec<Image>>() };
    if info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: so many headers, until this returns. Test: as above.
    let headers = unsafe { slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    // SAFETY: a text with an end, until this returns. Test: as above.
    let name = unsafe { CStr::from_ptr(info.dlpi_name) };
    images.push(Image::of(info.dlpi_addr as usize, name.to_bytes(), headers));
    0
}

impl Image {
    /// Those in which a thread may be now.
    pub(super) fn all() -> Vec<Self> {
        let mut images = Vec::new();
        // SAFETY: `add` takes what it is given here, which outlives the call. Test: as above.
        unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut images).cast()) };
        images
    }

    /// The program itself has no name, and what is in no file (the vDSO) one without a path.
    fn of(bias: usize, name: &[u8], headers: &[Elf64_Phdr]) -> Self {
        let file = match name {
            [] => OsStr::new("/proc/self/exe"),
            [b'/', ..] => OsStr::from_bytes(name),
            _ => OsStr::new(""),
        };
        let (mut loaded, mut table) = (Vec::new(), 0..0);
        for header in headers {
            let begin = header.p_vaddr as usize;
            let range = begin..begin.saturating_add(header.p_memsz as usize);
            match header.p_type {
                PT_LOAD => loaded.push((range, header.p_flags & PF_X != 0)),
                PT_GNU_EH_FRAME => table = range,
                _ => {}
            }
        }
        Self { bias, file: file.into(), loaded, table }
    }

    /// The address in the file, if it is in code.
    pub(super) fn address(&self, address: usize) -> Option<usize> {
        let address = address.wrapping_sub(self.bias);
        self.loaded.iter().any(|(range, is_code)| *is_code && range.contains(&address)).then_some(address)
    }

    /// The table of unwind information (.eh_frame_hdr), and what follows it (.eh_frame), with their addresses in the
    /// file.
    pub(super) fn unwind_table(&self, memory: &Memory) -> Option<[(usize, Vec<u8>); 2]> {
        let in_memory = |range: Range<usize>| range.start.wrapping_add(self.bias)..range.end.wrapping_add(self.bias);
        let table = memory.read(in_memory(self.table.clone())).ok()?;
        // The linker puts the one behind the other; the table says where.
        let (&encoding, pointer) = (table.get(1)?, table.get(4..8)?);
        const RELATIVE: u8 = 0x1b; // DW_EH_PE_pcrel | DW_EH_PE_sdata4
        if encoding != RELATIVE {
            return None;
        }
        let distance = i32::from_le_bytes(pointer.try_into().ok()?);
        let frames = self.table.start.checked_add(4)?.checked_add_signed(distance as isize)?;
        let (range, _) = self.loaded.iter().find(|(range, _)| range.contains(&frames))?;
        Some([(self.table.start, table), (frames, memory.read(in_memory(frames..range.end)).ok()?)])
    }
}
