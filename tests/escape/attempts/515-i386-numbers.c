/* Calls the kernel through int 0x80, where numbers mean other calls than in 64-bit mode.
 * Why it matters: a filter that does not look at the architecture is passed by choosing numbers; and it is more kernel code.
 * When it works: getpid answers under its i386 number.
 * control: host-root
 */
#include "attempt.h"

static void attempt(void)
{
    long answer = 20; /* getpid in i386 */
    __asm__ volatile("int $0x80" : "+a"(answer) : : "r8", "r9", "r10", "r11", "memory");
    if (answer == getpid())
        reached("i386 getpid answers %ld", answer);
    blocked("i386 getpid gave %ld", answer);
}

int main(void)
{
    return run(attempt);
}
