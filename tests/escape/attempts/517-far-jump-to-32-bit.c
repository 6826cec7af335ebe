/* Switches the processor to 32-bit mode by a far return and calls the kernel from there.
 * Why it matters: the thread is then a 32-bit one in every respect, including sysenter.
 * When it works: code after the jump gets an answer to getpid.
 * control: host-root
 */
#include "attempt.h"
#include <sys/mman.h>

static void attempt(void)
{
    /* Below 4 GiB, where 32-bit code can run: push 0x33; far-return pair around mov eax,20; int 0x80. */
    static const unsigned char code[] = {
        0xb8, 20, 0, 0, 0,             /* mov eax, 20      */
        0xcd, 0x80,                    /* int 0x80         */
        0x6a, 0x33,                    /* push 0x33        */
        0xe8, 0, 0, 0, 0,              /* call next        */
        0x83, 0x04, 0x24, 0x05,        /* add [esp], 5     */
        0xcb,                          /* retf to 64 bits  */
        0xc3,                          /* ret              */
    };
    unsigned char *page = mmap((void *)0x20000000, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (page == MAP_FAILED)
        blocked("no executable memory below 4 GiB: %s", strerror(errno));
    memcpy(page, code, sizeof code);
    unsigned long stack = 0x20000000 + 8192 - 64;
    long answer;
    __asm__ volatile(
        "mov %%rsp, %%r12\n"
        "mov %[stack], %%rsp\n"
        "lea 1f(%%rip), %%rax\n"
        "push %%rax\n"               /* where the last ret goes, in 64-bit mode */
        "push $0x23\n"
        "push %[entry]\n"
        "lretq\n"
        "1: mov %%r12, %%rsp\n"
        : "=&a"(answer)
        : [stack] "r"(stack), [entry] "r"((unsigned long)page)
        : "r12", "rcx", "rdx", "r8", "r9", "r10", "r11", "memory", "cc");
    if ((int)answer == getpid())
        reached("getpid answers %d from 32-bit mode", (int)answer);
    blocked("from 32-bit mode getpid gave %d", (int)answer);
}

int main(void)
{
    return run(attempt);
}
