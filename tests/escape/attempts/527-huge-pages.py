# Takes memory that limits may not count: huge pages.
# Why it matters: pages from the host's pool are charged elsewhere than ordinary memory.
# When it works: a huge page is mapped and written.
# control: weakened: huge-pages
import mmap

from attempt import reached, run

MAP_HUGETLB = 0x40000


def attempt():
    page = mmap.mmap(-1, 2 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_HUGETLB)
    page[0] = 1
    reached("wrote a huge page of the host's pool")


run(attempt)
