//! An allocator that frees records of files late: each stays as it was until a thousand more were freed.
//!
//! For programs in gVisor. After a restore, its epoll (20240729) can report a file that was taken out of it before the memory was written down.
//! Tokio hands the kernel a pointer to its own record of each file and believes what comes back, so that record would be read after it was freed:
//! seen as a lock that nobody holds and nobody can have, in what had become something else. Found as it was, it is a record that nobody waits on,
//! and the report does nothing. Records are known by their alignment, which next to nothing else has that is as small.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::{Mutex, PoisonError};

/// Records of files are aligned to this, on every machine Belljar runs on.
const ALIGNED: usize = 128;
/// And are not larger.
const LARGEST: usize = 512;
/// How many are freed late; half a megabyte at the most.
const LATE: usize = 1024;

/// The allocator.
#[derive(Debug)]
pub struct LateFree {
    waiting: Mutex<Waiting>,
}

/// A ring: the next to come takes the place of the oldest.
#[derive(Debug)]
struct Waiting {
    blocks: [Option<Block>; LATE],
    next: usize,
}

#[derive(Debug, Clone, Copy)]
struct Block {
    address: usize,
    layout: Layout,
}

impl Waiting {
    /// Takes a block, and gives back the one that has waited longest once there is no more room.
    fn exchange(&mut self, block: Block) -> Option<Block> {
        let place = self.blocks.get_mut(self.next)?;
        self.next = (self.next + 1) % LATE;
        place.replace(block)
    }
}

impl LateFree {
    /// With nothing that waits.
    pub const fn new() -> Self {
        Self { waiting: Mutex::new(Waiting { blocks: [None; LATE], next: 0 }) }
    }
}

impl Default for LateFree {
    fn default() -> Self {
        Self::new()
    }
}

fn may_be_a_record(layout: Layout) -> bool {
    layout.align() >= ALIGNED && layout.size() <= LARGEST
}

// SAFETY: every block comes from the system's allocator and goes back to it once, for the layout it was asked for with; nothing in here allocates, so the
// lock is never taken twice by one thread.
unsafe impl GlobalAlloc for LateFree {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise about the layout.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let (block, layout) = if may_be_a_record(layout) {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            match waiting.exchange(Block { address: block.expose_provenance(), layout }) {
                Some(oldest) => (std::ptr::with_exposed_provenance_mut(oldest.address), oldest.layout),
                None => return,
            }
        } else {
            (block, layout)
        };
        // SAFETY: it came from there, for this layout, and nobody has it any more.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above. Records are not made larger.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block for the test, given back once by [`give_back`].
    fn ask(memory: &LateFree, layout: Layout) -> *mut u8 {
        // SAFETY: no layout here is of size 0.
        unsafe { memory.alloc(layout) }
    }

    fn give_back(memory: &LateFree, block: *mut u8, layout: Layout) {
        // SAFETY: it was asked for with this layout and is given back once.
        unsafe { memory.dealloc(block, layout) }
    }

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).unwrap()
    }

    #[test]
    fn a_record_stays_as_it_was_until_many_more_are_freed() {
        let memory = LateFree::new();
        let record = layout(256, 128);
        let first = ask(&memory, record);
        // SAFETY: it is as long as that.
        unsafe { first.write_bytes(7, 256) };
        give_back(&memory, first, record);
        for _ in 1..LATE {
            let another = ask(&memory, record);
            assert_ne!(another, first, "nobody else gets it");
            give_back(&memory, another, record);
        }
        // SAFETY: it waits, so it is still there, and nobody else has it.
        let found = unsafe { std::slice::from_raw_parts(first, 256) };
        assert_eq!(found, [7; 256], "a late report finds what was there");
        assert!(memory.waiting.lock().unwrap().blocks.iter().flatten().any(|block| block.address == first.addr()));
        give_back(&memory, ask(&memory, record), record);
        assert!(memory.waiting.lock().unwrap().blocks.iter().flatten().all(|block| block.address != first.addr()), "then it is freed");
    }

    #[test]
    fn what_is_no_record_is_freed_at_once() {
        let memory = LateFree::new();
        for other in [layout(256, 16), layout(4096, 128)] {
            give_back(&memory, ask(&memory, other), other);
        }
        assert_eq!(memory.waiting.lock().unwrap().blocks.iter().flatten().count(), 0);
    }
}
