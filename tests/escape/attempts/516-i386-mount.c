/* Calls mount and unshare through int 0x80.
 * Why it matters: the point of 515: forbidden calls by another gate.
 * When it works: unshare(CLONE_NEWUSER) returns 0 under its i386 number.
 * control: unshared-root
 */
#include "attempt.h"

static void attempt(void)
{
    long answer = 310; /* unshare in i386 */
    __asm__ volatile("int $0x80" : "+a"(answer) : "b"(0x10000000L) : "r8", "r9", "r10", "r11", "memory");
    if (answer == 0)
        reached("i386 unshare(CLONE_NEWUSER) returned 0");
    blocked("i386 unshare gave %s", strerror((int)-answer));
}

int main(void)
{
    return run(attempt);
}
