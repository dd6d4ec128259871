//! The images loaded into this process: programs and libraries as the loader has laid them out, and their tables for
//! unwinding. All is read from the process's own memory, by files of /proc: nothing is trusted to stay mapped.
//!
//! Source: elf(5); proc_pid_maps(5).

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::linux::fs::MetadataExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// The header of a file, and of a program header in it.
const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;

/// More than any program's unwind information, and less than memory.
const MOST: usize = 1 << 28;

const PT_LOAD: u32 = 1;
const PT_GNU_EH_FRAME: u32 = 0x6474_e550;

/// The executable part of one file.
#[derive(Debug)]
pub(super) struct Image {
    /// Where it is in memory.
    range: Range<usize>,
    /// What an address in memory is more than that in the file.
    bias: usize,
    /// None if the file is not there any more, or another one: a program that was built anew.
    pub(super) file: Option<PathBuf>,
    /// Where the table of unwind information is, in the file's addresses.
    table: Range<usize>,
}

/// A line of /proc/self/maps.
struct Mapping<'a> {
    range: Range<usize>,
    is_executable: bool,
    is_first: bool,
    inode: u64,
    path: &'a str,
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

impl Image {
    /// Those in which a thread may be now.
    pub(super) fn all(memory: &Memory) -> io::Result<Vec<Self>> {
        let maps = maps()?;
        let mappings: Vec<_> = maps.lines().filter_map(Mapping::parse).collect();
        // A file may be mapped more than once, by whoever reads it: each time it begins anew.
        let images = mappings.chunk_by(|one, next| !next.is_first && (one.inode, one.path) == (next.inode, next.path));
        Ok(images.filter_map(|mappings| Self::of(memory, mappings)).collect())
    }

    /// Of a file that is mapped there.
    fn of(memory: &Memory, mappings: &[Mapping<'_>]) -> Option<Self> {
        let first = mappings.first().filter(|first| first.is_first)?;
        let code = mappings.iter().filter(|mapping| mapping.is_executable);
        let code = code.fold(None, |range: Option<Range<usize>>, mapping| {
            let Range { start, end } = mapping.range;
            Some(range.map_or(start..end, |range| range.start.min(start)..range.end.max(end)))
        })?;
        let headers = Headers::read(memory, first.range.start)?;
        let begin = headers.find(|kind, offset| kind == PT_LOAD && offset == 0)?.start;
        let table = headers.find(|kind, _| kind == PT_GNU_EH_FRAME).unwrap_or(0..0);
        let bias = first.range.start.checked_sub(begin & !0xfff)?;
        let is_there = fs::metadata(first.path).is_ok_and(|file| file.st_ino() == first.inode);
        Some(Self { range: code, bias, file: is_there.then(|| first.path.into()), table })
    }

    /// The address in the file.
    pub(super) fn address(&self, address: usize) -> Option<usize> {
        self.range.contains(&address).then(|| address.wrapping_sub(self.bias))
    }

    /// The table of unwind information (.eh_frame_hdr), and what follows it (.eh_frame), with their addresses in the
    /// file.
    pub(super) fn unwind_table(&self, memory: &Memory) -> Option<[(usize, Vec<u8>); 2]> {
        let Range { start, end } = self.table.clone();
        let table = memory.read(start.checked_add(self.bias)?..end.checked_add(self.bias)?).ok()?;
        // The linker puts the one behind the other; the table says where.
        let (&encoding, pointer) = (table.get(1)?, table.get(4..8)?);
        const RELATIVE: u8 = 0x1b; // DW_EH_PE_pcrel | DW_EH_PE_sdata4
        if encoding != RELATIVE {
            return None;
        }
        let distance = i32::from_le_bytes(pointer.try_into().ok()?);
        let frames = start.checked_add(4)?.checked_add_signed(distance as isize)?;
        let begin = frames.checked_add(self.bias)?;
        Some([(start, table), (frames, memory.read(begin..mapped_from(begin)?).ok()?)])
    }
}

/// Paths need not be UTF-8: then there is no such file.
fn maps() -> io::Result<String> {
    Ok(String::from_utf8_lossy(&fs::read("/proc/self/maps")?).into_owned())
}

/// Up to where memory is mapped from `begin` on.
fn mapped_from(begin: usize) -> Option<usize> {
    let maps = maps().ok()?;
    let mut mappings = maps.lines().filter_map(Mapping::parse);
    mappings.find(|mapping| mapping.range.contains(&begin)).map(|mapping| mapping.range.end)
}

impl<'a> Mapping<'a> {
    /// `begin-end perms offset device inode path`.
    fn parse(line: &'a str) -> Option<Self> {
        let mut words = line.splitn(6, ' ');
        let (begin, end) = words.next()?.split_once('-')?;
        let (permissions, offset, _, inode) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let number = |text| usize::from_str_radix(text, 16).ok();
        let path = words.next()?.trim_start();
        // Of code without a file the kernel's own alone is known.
        let is_known = path.starts_with('/') || path == "[vdso]";
        is_known.then_some(Self {
            range: number(begin)?..number(end)?,
            is_executable: permissions.as_bytes().get(2) == Some(&b'x'),
            is_first: number(offset)? == 0,
            inode: inode.parse().ok()?,
            path,
        })
    }
}

/// The program headers of a file, one behind the other.
struct Headers(Vec<u8>);

impl Headers {
    /// Of the file that is loaded at `begin`, if it is one of 64 bits.
    fn read(memory: &Memory, begin: usize) -> Option<Self> {
        let header = memory.read(begin..begin.checked_add(HEADER)?).ok()?;
        if !header.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        let offset = word(&header, 32)?;
        let count = u16::from_le_bytes(header[56..58].try_into().ok()?);
        let begin = begin.checked_add(offset)?;
        memory.read(begin..begin.checked_add(usize::from(count) * PROGRAM_HEADER)?).ok().map(Self)
    }

    /// The addresses of the first one whose kind and offset in the file are right.
    fn find(&self, is_right: impl Fn(u32, usize) -> bool) -> Option<Range<usize>> {
        self.0.chunks_exact(PROGRAM_HEADER).find_map(|header| {
            let kind = u32::from_le_bytes(header[..4].try_into().ok()?);
            let (offset, begin, size) = (word(header, 8)?, word(header, 16)?, word(header, 40)?);
            is_right(kind, offset).then(|| begin..begin.saturating_add(size))
        })
    }
}

fn word(bytes: &[u8], at: usize) -> Option<usize> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?) as usize)
}
