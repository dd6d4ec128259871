//! From the registers and the stack of a thread to the functions that it was in, by the tables that compilers make for
//! exceptions (.eh_frame; DWARF 5, section 6.4).
//!
//! A frame that these tables do not describe ends the stack: code that was made while the program ran, and what has an
//! expression for a rule, as the stubs for functions of libraries and what a handler of signals returns to.

use addr2line::gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, LittleEndian, Register, RegisterRule, UnwindContext, UnwindSection,
    UnwindTableRow,
};

use super::image::{Image, Memory};
use super::interrupt::Interrupted;

const STACK_POINTER: usize = 7;
const RETURN_ADDRESS: usize = 16;

/// Where a thread was in a function.
pub(super) struct CodeAddress<'a> {
    pub(super) image: &'a Image,
    /// In the file of the image: of an instruction of the function, and of the call in which it was.
    pub(super) address: usize,
}

/// The thread between two frames.
struct Unwinder<'a> {
    memory: &'a Memory,
    stack: &'a [usize],
    /// Where the stack begins.
    begin: usize,
    registers: [usize; RETURN_ADDRESS + 1],
}

/// The places in which the thread was, from the innermost on.
pub(super) fn places<'a>(thread: &Interrupted, images: &'a [Image], memory: &Memory) -> Vec<CodeAddress<'a>> {
    let registers = thread.registers;
    let mut unwinder = Unwinder { memory, stack: &thread.stack, begin: registers[STACK_POINTER], registers };
    let mut tables: Vec<Option<Table>> = images.iter().map(|_| None).collect();
    let mut places = Vec::new();
    let mut is_after_call = false;
    while let Some(address) = unwinder.registers[RETURN_ADDRESS].checked_sub(usize::from(is_after_call)) {
        let found =
            images.iter().zip(&mut tables).find_map(|(image, table)| Some((image, table, image.address(address)?)));
        let Some((image, table, address)) = found else { break };
        places.push(CodeAddress { image, address });
        let Some(table) = (match table {
            Some(table) => Some(table),
            None => Table::of(image, unwinder.memory).map(|new| table.insert(new)),
        }) else {
            break;
        };
        if table.row(address, |row| unwinder.step(row)).flatten().is_none() {
            break;
        }
        is_after_call = true;
    }
    places
}

impl Unwinder<'_> {
    /// To the caller. `None` if that cannot be told, or there is none.
    fn step(&mut self, row: &UnwindTableRow<usize>) -> Option<()> {
        let CfaRule::RegisterAndOffset { register, offset } = *row.cfa() else { return None };
        let frame = self.get(register)?.checked_add_signed(offset as isize)?;
        if frame <= self.registers[STACK_POINTER] {
            return None; // it would go on for ever
        }
        let mut registers = self.registers;
        for &(register, ref rule) in row.registers() {
            let register = usize::from(register.0);
            if register < registers.len() {
                registers[register] = self.recover(register, rule, frame)?;
            }
        }
        // Read from the stack, so that there is an end.
        let Some(RegisterRule::Offset(_)) = row.register(Register(RETURN_ADDRESS as u16)) else { return None };
        registers[STACK_POINTER] = frame;
        self.registers = registers;
        Some(())
    }

    fn recover(&self, register: usize, rule: &RegisterRule<usize>, frame: usize) -> Option<usize> {
        match *rule {
            RegisterRule::Undefined | RegisterRule::SameValue => Some(self.registers[register]),
            RegisterRule::Offset(offset) => self.read(frame.checked_add_signed(offset as isize)?),
            RegisterRule::ValOffset(offset) => frame.checked_add_signed(offset as isize),
            RegisterRule::Register(other) => self.get(other),
            _ => None,
        }
    }

    fn get(&self, register: Register) -> Option<usize> {
        self.registers.get(usize::from(register.0)).copied()
    }

    /// A word of the stack.
    fn read(&self, address: usize) -> Option<usize> {
        let offset = address.checked_sub(self.begin)?;
        let is_whole = offset.is_multiple_of(size_of::<usize>());
        self.stack.get(offset / size_of::<usize>()).copied().filter(|_| is_whole)
    }
}

/// The unwind information of an image.
struct Table {
    index: Vec<u8>,
    frames: Vec<u8>,
    bases: BaseAddresses,
    context: UnwindContext<usize>,
}

impl Table {
    fn of(image: &Image, memory: &Memory) -> Option<Self> {
        let [(index_at, index), (frames_at, frames)] = image.unwind_table(memory)?;
        let bases = BaseAddresses::default().set_eh_frame_hdr(index_at as u64).set_eh_frame(frames_at as u64);
        Some(Self { index, frames, bases, context: UnwindContext::new() })
    }

    /// Calls `step` with what is to be done at that address.
    fn row<T>(&mut self, address: usize, step: impl FnOnce(&UnwindTableRow<usize>) -> T) -> Option<T> {
        let index = EhFrameHdr::new(&self.index, LittleEndian).parse(&self.bases, size_of::<usize>() as u8).ok()?;
        let mut frames = EhFrame::new(&self.frames, LittleEndian);
        frames.set_address_size(size_of::<usize>() as u8);
        let (table, address) = (index.table()?, address as u64);
        let context = &mut self.context;
        let row = table.unwind_info_for_address(&frames, &self.bases, context, address, EhFrame::cie_from_offset);
        row.ok().map(step)
    }
}
