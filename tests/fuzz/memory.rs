//! How much memory a thread holds at most while it does something: the allocator of these tests counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    /// What this thread has taken and not given back, in bytes, and the most that it was.
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

fn count(more: isize) {
    // A thread that ends has no such cells any more.
    let held = HELD.try_with(|held| held.replace(held.get() + more) + more).unwrap_or_default();
    let _ = MOST.try_with(|most| most.set(most.get().max(held)));
}

fn signed(size: usize) -> isize {
    isize::try_from(size).unwrap_or(isize::MAX)
}

// SAFETY: the system's allocator does all of it; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(signed(layout.size()));
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(signed(layout.size()));
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(-signed(layout.size()));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(signed(size) - signed(layout.size()));
        // SAFETY: as the caller promises.
        unsafe { System.realloc(place, layout, size) }
    }
}

/// Returns what the work returns, and how many bytes more than before this thread held at most meanwhile.
pub(super) fn most<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    MOST.set(before);
    let done = work();
    (done, usize::try_from(MOST.get() - before).unwrap_or_default())
}

#[test]
fn what_is_held_for_a_moment_counts() {
    let (length, most) = most(|| {
        drop(vec![1_u8; 10 << 20]);
        vec![1_u8; 1 << 20].len()
    });
    assert!(length == 1 << 20 && (10 << 20..11 << 20).contains(&most), "{most}");
}
