//! An allocator that keeps memory of an unusual alignment for its own kind: what was freed is given only to somebody who asks for the same size and
//! alignment, and is left as it was until then.
//!
//! For programs in gVisor. After a restore, its epoll (20240729) can report a file that was taken out of it before the memory was written down.
//! Tokio hands the kernel a pointer to its own record of each file and believes what comes back, so that record would be read after it was freed:
//! seen as a lock that nobody holds and nobody can have. Those records are the only ones aligned to so much, so a late report is about one that is
//! free, and harmless, or about one that is in use again, and a wake too many.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::{Mutex, PoisonError};

/// Records of files are aligned to this or more, on every machine Belljar runs on; hardly anything else is.
const UNUSUAL: usize = 128;
/// Free blocks that are kept; beyond that they are freed. More than an agent has connections and pipes.
const KEPT: usize = 1024;

/// The allocator.
#[derive(Debug)]
pub struct KeptMemory {
    free: Mutex<Free>,
}

#[derive(Debug)]
struct Free {
    blocks: [Block; KEPT],
    count: usize,
}

#[derive(Debug, Clone, Copy)]
struct Block {
    address: usize,
    size: usize,
    align: usize,
}

impl Free {
    fn take(&mut self, layout: Layout) -> Option<*mut u8> {
        let known = self.blocks.get(..self.count)?;
        let at = known.iter().position(|block| block.size == layout.size() && block.align == layout.align())?;
        let (found, last) = (*known.get(at)?, *known.last()?);
        *self.blocks.get_mut(at)? = last;
        self.count -= 1;
        Some(std::ptr::with_exposed_provenance_mut(found.address))
    }

    /// Whether there was room for it.
    fn keep(&mut self, block: *mut u8, layout: Layout) -> bool {
        let Some(place) = self.blocks.get_mut(self.count) else { return false };
        *place = Block { address: block.expose_provenance(), size: layout.size(), align: layout.align() };
        self.count += 1;
        true
    }
}

impl KeptMemory {
    /// With nothing kept yet.
    pub const fn new() -> Self {
        let nothing = Block { address: 0, size: 0, align: 0 };
        Self { free: Mutex::new(Free { blocks: [nothing; KEPT], count: 0 }) }
    }
}

impl Default for KeptMemory {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: every block comes from the system's allocator for the layout that is asked for, or was given back for exactly that layout and is in nobody's
// hands; nothing in here allocates, so the lock is never taken twice by one thread.
unsafe impl GlobalAlloc for KeptMemory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() >= UNUSUAL
            && let Some(block) = self.free.lock().unwrap_or_else(PoisonError::into_inner).take(layout)
        {
            return block;
        }
        // SAFETY: the caller's promise about the layout.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if layout.align() >= UNUSUAL && self.free.lock().unwrap_or_else(PoisonError::into_inner).keep(block, layout) {
            return;
        }
        // SAFETY: it came from there, for this layout.
        unsafe { System.dealloc(block, layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block for the test, given back once by [`give_back`].
    fn ask(memory: &KeptMemory, layout: Layout) -> *mut u8 {
        // SAFETY: no layout here is of size 0.
        unsafe { memory.alloc(layout) }
    }

    fn give_back(memory: &KeptMemory, block: *mut u8, layout: Layout) {
        // SAFETY: it was asked for with this layout and is given back once.
        unsafe { memory.dealloc(block, layout) }
    }

    #[test]
    fn what_is_unusual_goes_to_its_own_kind_only_and_is_left_as_it_was() {
        let memory = KeptMemory::new();
        let (record, larger, plain) = (layout(256, 128), layout(384, 128), layout(256, 16));
        let first = ask(&memory, record);
        // SAFETY: it is as long as that.
        unsafe { first.write_bytes(7, 256) };
        give_back(&memory, first, record);
        // SAFETY: it is kept, so it is still there, and nobody else has it.
        let found = unsafe { std::slice::from_raw_parts(first, 256) };
        assert_eq!(found, [7; 256], "a late report finds what was there");
        let (other, ordinary) = (ask(&memory, larger), ask(&memory, plain));
        assert!(other != first && ordinary != first, "nobody else gets it");
        let again = ask(&memory, record);
        assert_eq!((again, again.addr() % 128), (first, 0), "its own kind does");
        for (block, layout) in [(again, record), (other, larger), (ordinary, plain)] {
            give_back(&memory, block, layout);
        }
        assert_eq!(memory.free.lock().unwrap().count, 2, "what is ordinary is not kept");
    }

    #[test]
    fn no_more_is_kept_than_there_is_room_for() {
        let memory = KeptMemory::new();
        let record = layout(128, 128);
        let blocks: Vec<_> = (0..KEPT + 10).map(|_| ask(&memory, record)).collect();
        for block in blocks {
            give_back(&memory, block, record);
        }
        assert_eq!(memory.free.lock().unwrap().count, KEPT);
    }

    fn layout(size: usize, align: usize) -> Layout {
        Layout::from_size_align(size, align).unwrap()
    }
}
